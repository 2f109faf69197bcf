#include "run/setup/complete_model.h"

#include "core/plan/operands.h"
#include "run/engine/engine.h"
#include "run/modules/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace capo::run {

namespace {

constexpr std::int64_t kTokens = 8;
constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kGroups = 4;
constexpr std::int64_t kTopK = 2;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kHeadColumns = 4;

// A linear module whose gradient goes to main_grad, as in every run that people do.
Module default_module() {
  Module module{.name = "linear", .kind = ModuleKind::Linear, .dtype = DataType::Bf16};
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.grad_added_to_main_grad = true;
  return module;
}

// Tells by chunk whether its weight gradients are actions of their own; a mixed chunk may have
// none.
std::vector<bool> delays_of(const RankOrder& rank) {
  const std::vector<Delay> declared = resolved_delay(rank);
  std::vector<bool> delays;
  for (const Delay delay : declared) delays.push_back(delay == Delay::Always);
  for (const Entry& entry : rank.order) {
    if (entry.kind != Kind::BackwardInput || entry.chunk < 1) continue;
    const auto chunk = entry.chunk.index();
    if (chunk < delays.size() && declared[chunk] == Delay::Mixed) delays[chunk] = true;
  }
  return delays;
}

class Completer {
 public:
  Completer(const CheckOptions& declared, const Schedule& schedule) : declared_(declared) {
    model.options = declared;
    model.options.plan.alignment = kAlignment;
    if (!declared.plan.kind) {
      model.options.plan.kind = PlanKind::Safe;
      assume("plan safe");
    }
    model.options.modules = {};
    const auto layers = layer_counts(schedule);
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      const std::vector<bool> delays = delays_of(schedule.ranks[r]);
      auto& chunks = model.options.modules.layers.emplace_back();
      for (std::size_t c = 0; c < delays.size(); ++c) {
        auto& of_chunk = chunks.emplace_back();
        const std::int32_t count = c < layers[r].size() ? layers[r][c] : 1;
        for (std::int32_t layer = 0; layer < count; ++layer) {
          of_chunk.push_back(use(static_cast<std::int32_t>(r), static_cast<std::int32_t>(c) + 1,
                                 layer, delays[c]));
        }
      }
    }
    model.assumed.assign(assumed_.begin(), assumed_.end());
  }

  CompletedModel model;

 private:
  void assume(std::string what) { assumed_.insert(std::move(what)); }

  // The number of the module of a layer that delays its weight gradient, or does not.
  std::int32_t use(std::int32_t rank, std::int32_t chunk, std::int32_t layer, bool delayed) {
    const Module* module = declared_.modules.of(rank, chunk, layer);
    const auto [at, fresh] = uses_.try_emplace(
        {module, delayed}, static_cast<std::int32_t>(model.options.modules.list.size()));
    if (!fresh) return at->second;
    if (module == nullptr) assume("linear modules that fuse their accumulation");
    Module used = module == nullptr ? default_module() : *module;
    used.flags.delay_wgrad = delayed;
    if (uses_.contains({module, !delayed})) used.name += delayed ? " (delayed)" : " (whole)";
    complete(used);
    model.options.modules.list.push_back(std::move(used));
    return at->second;
  }

  void complete(Module& module) {
    const auto take = [&](std::optional<std::int64_t>& value, std::int64_t usual,
                          const char* name) {
      if (value) return;
      value = usual;
      assume(fmt::format("{} {}", name, usual));
    };
    module.derived = {};  // a run keeps tensors of its own
    if (!module.kind) return;
    if (!module.dtype) {
      module.dtype = DataType::Bf16;
      assume("dtype bf16");
    }
    // One declared sequence is a microbatch, and heads that are not said to be shared are not.
    ModuleShape& shape = module.shape;
    const bool halves = has_two_halves(*module.kind);
    const bool attention = is_attention(*module.kind) || halves;
    take(shape.tokens, attention ? shape.sequence.value_or(kTokens) : kTokens, "tokens");
    take(shape.hidden, kColumns, "hidden");
    if (attention) {
      take(shape.heads, shape.kv_heads.value_or(kHeads), "heads");
      take(shape.kv_heads, *shape.heads, "kv_heads");
      take(shape.head_dim, kHeadColumns, "head_dim");
      take(shape.sequence, *shape.tokens, "sequence");
    }
    if (!attention || halves) take(shape.ffn, kColumns, "ffn");
    if (has_router(module)) {
      take(shape.groups, std::max(kGroups, shape.top_k.value_or(1)), "groups");
      take(shape.top_k, std::min(kTopK, *shape.groups), "top_k");
    }
    if (is_grouped(*module.kind)) {
      take(shape.groups, kGroups, "groups");
      if (!module.splits) {
        module.splits = Splits::Device;
        assume("splits on the device");
      }
    }
    complete_bytes(module);
  }

  void complete_bytes(Module& module) {
    LayerShape shape = declared_shape(module);
    if (rough_bytes(shape) > kMostBytes) return;  // module_refusal() says so in words
    const Aliases aliases = declared_.plan.aliases.value_or(*aliases_of(module));
    shape.copies_input = !aliases.input;
    if (is_grouped(*module.kind) && module.splits == Splits::Input && !module.bytes.input) {
      module.bytes.input = sizes_offset(shape) + shape.groups * 8;
    }
    if (!is_one_product(*module.kind) && !module.bytes.activations) {
      module.bytes.activations = kept_bytes(shape);
    }
    if (!quantizes(recipe_of(module))) return;
    if (shape.scaling) {
      assume(fmt::format("recipe {} with {} of E4m3 codes", name_of(recipe_of(module)),
                         *shape.scaling == Scaling::Block ? "blocks of 128" : "blocks of 32"));
    } else {
      // To a plan a recipe means that operands are copies; they are of the module's own type here.
      assume(fmt::format("recipe {} run as {} with copied operands", name_of(recipe_of(module)),
                         name_of(*module.dtype)));
    }
    // Without codes products read the weight itself.
    module.bytes.quantized_weight = shape.scaling ? quantized_weight_bytes(shape) : 0;
    if (!aliases.input || shape.scaling) module.bytes.activations = kept_bytes(shape);
    if (!aliases.grad_output) {
      module.bytes.operands = shape.scaling
                                  ? coded_gradient_bytes(shape)
                                  : shape.tokens * output_columns(shape) * bytes_of(shape.type);
    }
  }

  const CheckOptions& declared_;
  std::map<std::pair<const Module*, bool>, std::int32_t> uses_;
  std::set<std::string> assumed_;
};

}  // namespace

CompletedModel complete_model(const CheckOptions& declared, const Schedule& schedule) {
  return std::move(Completer(declared, schedule).model);
}

void fuse_gradients(ModuleTable& modules) {
  for (Module& module : modules.list) {
    module.flags.fuse_wgrad_accumulation = true;
    module.flags.grad_added_to_main_grad = true;
  }
}

}  // namespace capo::run
