// The rules about what quantization leaves outside of the graphs: weights that are quantized once a
// step, biases whose gradient the quantizing of dY makes, and reductions of magnitudes.
//
//   rank 0: F1.1 F1.0 ...     F1.0 quantizes the weight of the step, and F1.1 has read the one of
//                             the step before: Y07
//
// A recipe is one row in core/model/recipe.h, and what TransformerEngine makes of it on a device
// one in core/frameworks/te/quantization.h. Y07 and T15 look at orders, C12 to C15 at declared
// modules alone (modules.h). Tested by quantization_test.cpp, module_rules_test.cpp and
// tests/corpus/rules/C12 to C15, Y07 and T15.

#include "core/frameworks/te/quantization.h"
#include "core/base/index.h"
#include "core/model/recipe.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/modules.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace capo::rules {

namespace {

bool queues_no_bias_gradient(const Context& context, const Module& module) {
  return context.options().plan.kind != PlanKind::McoreLocal && te::misses_bias_gradient(module);
}

ModuleFinding describe_quantized_bias(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` quantizes (recipe {}), has a bias and delays its weight gradient: B "
              "makes the bias gradient, and the pass before the capture of {} looks for it in the "
              "queue ({})",
              use.module->name, name_of(recipe_of(*use.module)),
              words::placed(context, *use.order, use.at),
              recipe_of(*use.module) == Recipe::Block ? "RuntimeError" : "AttributeError"),
          .label = "is never captured",
          .help = "add the bias outside of the module, or do not delay its weight gradient"};
}

// The bias gradient of a quantizing layernorm-mlp is not among what its delayed product returns.
//
//   [1, -1, -1.5]     B quantizes dY and adds up the bias gradient on the way; the queue gets a
//                     product without a bias. The pass before capture sets `.grad` back to None,
//                     and backward_dw(), which finds it so, converts what the product returned:
//                     nothing
//
// Read in layernorm_mlp.py:2765 of TransformerEngine 2.20.2, and module/base.py:1792 (commit
// d0067d0da: 1966), where 2.20 asks first whether there is a gradient: up to 2.19 linear and
// layernorm-linear fail alike. A module that does without a layernorm-mlp is not at fault here.
constexpr ModuleRule kQuantizedBias{.shows_at = ShowsAt::WeightGradient,
                                    .at_fault = queues_no_bias_gradient,
                                    .describe = describe_quantized_bias};

bool bakes_in_cache(const Context& /*context*/, const Module& module) {
  return module.weight_cache == WeightCache::Python && quantizes(recipe_of(module)) &&
         !module.flags.frozen_weight;
}

ModuleFinding describe_baked_cache(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` is told in Python whether to quantize its weight: the capture of {} "
              "bakes the answer in, and after the optimizer's step its replays multiply with the "
              "weight that was quantized before it",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "reads the quantized weight of the capture for ever",
          .help =
              "capture with cache_quantized_params, and hand is_first_microbatch to each call "
              "of the graphed callable",
          .replayed = use.entries({Kind::Forward}, 2),
          .second_label = "and so does this"};
}

// A flag in Python that says whether a weight is quantized again is a constant of a graph.
//
//   [1, 1, -1, -1]     is_first_microbatch=False at capture: no graph quantizes the weight, so that
//                      the step of the optimizer reaches none of them
//
// cache_quantized_params sets a number on the device instead, which every graph reads as it is
// replayed (graph.py:1035-1041 and 1123-1134, base.py:857-872): that is Y07's concern. A frozen
// weight has no optimizer.
constexpr ModuleRule kBakedCache{
    .shows_at = ShowsAt::Forward, .at_fault = bakes_in_cache, .describe = describe_baked_cache};

bool is_refused(const Context& context, const Module& module) {
  return !te::runs(recipe_of(module), context.options().environment);
}

ModuleFinding describe_refused(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` quantizes by recipe {}, which TransformerEngine refuses on {}: {} is "
              "never captured",
              use.module->name, name_of(recipe_of(*use.module)),
              *context.options().environment.architecture == Architecture::Hopper ? "Hopper"
                                                                                  : "Blackwell",
              words::placed(context, *use.order, use.at)),
          .label = "autocast raises before it",
          .help = "take recipe current or block, or declare the device that is meant"};
}

// A recipe that the declared device does not run.
//
//   [1, -1]     mxfp8 on Hopper: "Device compute capability 10.0 or higher required"
//
// Without a declared architecture some device may be meant that does.
constexpr ModuleRule kRecipeRefused{
    .shows_at = ShowsAt::Forward, .at_fault = is_refused, .describe = describe_refused};

bool fetches_sizes(const Context& context, const Module& module) {
  return te::fetches_sizes(module, context.options().environment);
}

ModuleFinding describe_fetches_sizes(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` has to fetch the sizes of its groups from the device, since {}: {} "
              "cannot wait for it while it is being captured",
              use.module->name,
              te::why_sizes_come_from_host(*use.module, context.options().environment),
              words::placed(context, *use.order, use.at)),
          .label = "its capture fails",
          .help = "take a recipe with a grouped product, or leave the layer out of the graphs"};
}

// A grouped module whose recipe has no grouped product asks the device for the sizes of its groups.
//
//   [1, -1]     recipe delayed: one product for each group, of sizes on the host, which the stream
//               that is being captured cannot be waited for
//
// fp32 is C01's concern, and a recipe that does not run at all C14's.
constexpr ModuleRule kSizesOnTheHost{
    .shows_at = ShowsAt::Forward, .at_fault = fetches_sizes, .describe = describe_fetches_sizes};

bool keeps_quantized_weight(const Module& module) {
  return module.weight_cache == WeightCache::Device && quantizes(recipe_of(module)) &&
         !module.flags.frozen_weight;
}

// The forward of a chunk's first microbatch, which quantizes, and the first one replayed before it;
// nullopt if none is.
struct Stale {
  std::size_t read = 0;
  std::size_t quantized = 0;
};

std::optional<Stale> stale_read(const OrderView& order, std::int32_t chunk) {
  std::optional<std::size_t> read;
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (entry.kind != Kind::Forward || entry.chunk != chunk) continue;
    if (entry.microbatch == 0) return read ? std::optional(Stale{*read, at}) : std::nullopt;
    if (!read) read = at;
  }
  return std::nullopt;
}

Diagnostic stale_weight_finding(const Context& context, const Module& module,
                                const OrderView& order, const Stale& stale, Severity severity) {
  Diagnostic finding{
      .severity = severity,
      .message =
          fmt::format("{}{} reads the quantized weight of module `{}` before {}, the first "
                      "microbatch, makes it "
                      "anew: it multiplies with the weight from before the optimizer's step",
                      severity == Severity::Error
                          ? ""
                          : "if these layers are captured as TransformerEngine captures them, ",
                      words::placed(context, order, stale.read), module.name,
                      words::quoted(context, order.entries[stale.quantized])),
      .labels = {{order.entries[stale.read].span(), "reads the weight of the step before"},
                 {order.entries[stale.quantized].span(), "quantizes that of this step"}},
      .help = {.text = fmt::format("run {} first, or leave `weight_cache` out, so that each "
                                   "microbatch quantizes the weight",
                                   words::quoted(context, order.entries[stale.quantized]))},
      .witness = words::entries(context, order, {stale.read, stale.quantized})};
  finding.witness.kind = WitnessKind::Replay;
  return finding;
}

// A weight that the first microbatch of a step quantizes is read by no forward before that one.
//
//   rank 0: F1.1 F1.0 ...     F1.0 alone has is_first_microbatch; the number on the device that
//                             keeps other graphs from quantizing is of all graphs together
//
// One finding for each module. It concerns the order of replay, since a capture multiplies with
// what the passes before it left. In a TE list the k-th forward of a chunk is microbatch k, so it
// never breaks this. Capo's own modules quantize for each microbatch, so under its own plan it is
// no concern.
void stale_weight(const Context& context, Findings& out) {
  const std::vector<Module>& list = context.options().modules.list;
  if (std::none_of(list.begin(), list.end(), keeps_quantized_weight)) return;
  const std::optional<Severity> severity = captured_by_te(context);
  if (!severity) return;
  std::set<const Module*> reported;
  for (const OrderView& order : context.orders()) {
    if (!order.is_replayed()) continue;
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const Module* module = module_at_fault(
          context, order.rank, chunk, [](const Module& of) { return keeps_quantized_weight(of); });
      if (module == nullptr) continue;
      const auto stale = stale_read(order, chunk);
      if (!stale || !reported.insert(module).second || !out.found(*severity)) continue;
      out.report(stale_weight_finding(context, *module, order, *stale, *severity));
    }
  }
}

// An entry behind which magnitudes are reduced.
struct AmaxReduction {
  std::size_t at = 0;
  bool forward = false;
};

// TE reduces behind each forward, as its autocast ends, and behind the backward of the first module
// of each: once for each F and B of a chunk that delays its scales.
std::vector<AmaxReduction> amax_reductions(const Context& context, const OrderView& order) {
  std::vector<AmaxReduction> all;
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    const bool forward = entry.kind == Kind::Forward;
    if (!forward && entry.kind != Kind::Backward && entry.kind != Kind::BackwardInput) continue;
    if (!order.knows(entry.chunk)) continue;
    const Module* delayed = module_at_fault(
        context, order.rank, entry.chunk,
        [](const Module& module) { return facts_of(recipe_of(module)).state_outside; });
    if (delayed != nullptr) all.push_back({at, forward});
  }
  return all;
}

const OrderView* replayed_order_of(const Context& context, std::int32_t rank) {
  for (const OrderView& order : context.orders()) {
    if (order.rank == rank && order.is_replayed()) return &order;
  }
  return nullptr;
}

struct Member {
  const OrderView* order = nullptr;
  std::vector<AmaxReduction> reductions;
};

std::string reduction_words(const Context& context, const Member& member, std::size_t k) {
  if (member.reductions.empty()) return fmt::format("rank {} has none", member.order->rank);
  if (k >= member.reductions.size())
    return fmt::format("rank {} has only {}", member.order->rank, member.reductions.size());
  const AmaxReduction& reduction = member.reductions[k];
  return fmt::format("that of rank {} is of {}s, behind {}", member.order->rank,
                     reduction.forward ? "forward" : "backward",
                     words::quoted(context, member.order->entries[reduction.at]));
}

Diagnostic amax_finding(const Context& context, const Member& one, const Member& other,
                        std::size_t k) {
  Diagnostic finding{
      .message =
          fmt::format("reductions of magnitudes do not meet, from number {} on: {}; {}", k + 1,
                      reduction_words(context, one, k), reduction_words(context, other, k)),
      .help = {.text = "reduce over ranks of one stage (amax_reduction_group), or take a recipe "
                       "without delayed scales"}};
  for (const Member* member : {&other, &one}) {
    const bool over = k >= member->reductions.size();
    const std::size_t shown = over ? member->reductions.size() - 1 : k;
    if (member->reductions.empty()) continue;
    finding.labels.push_back({member->order->entries[member->reductions[shown].at].span(),
                              over ? "the last reduction" : "reduces here"});
    const auto task = words::reference(context, *member->order, member->reductions[shown].at);
    finding.witness.tasks.push_back(task);
  }
  finding.witness.kind = WitnessKind::Entries;
  return finding;
}

// Ranks that reduce the largest magnitudes of delayed scaling together do so behind the same
// sequence of forwards and backwards.
//
//   rank 0: F1.0 F1.1 B1.0 B1.1     its second reduction is of a forward's magnitudes, rank 1's of
//   rank 1: F1.0 B1.0 F1.1 B1.1     a backward's: sizes differ, or maxima of other tensors are
//   taken
//
// autocast() and each replay of a backward reduce in Python, over amax_reduction_group, which is
// all ranks if nobody names one (quantization.py:645-712 and 772-782, graph.py:1100). Ranks of one
// stage have one order, so that nothing is to be declared of theirs. How many magnitudes each
// brings is not compared.
void amax_order(const Context& context, Findings& out) {
  const std::vector<std::int32_t>& group = context.options().environment.amax_group;
  std::vector<Member> members;
  for (const std::int32_t rank : group) {
    const OrderView* order = replayed_order_of(context, rank);
    if (order != nullptr) members.push_back({order, amax_reductions(context, *order)});
  }
  for (std::size_t i = 1; i < members.size(); ++i) {
    const Member& one = members.front();
    const Member& other = members[i];
    const auto [a, b] = std::mismatch(
        one.reductions.begin(), one.reductions.end(), other.reductions.begin(),
        other.reductions.end(),
        [](const AmaxReduction& x, const AmaxReduction& y) { return x.forward == y.forward; });
    if (a == one.reductions.end() && b == other.reductions.end()) continue;
    if (!out.found()) return;
    out.report(amax_finding(context, one, other, as_index(a - one.reductions.begin())));
    return;
  }
}

// Most steps have neither a module that quantizes nor a device that is told, and are asked no more.
bool concerns(const Context& context) {
  const std::vector<Module>& list = context.options().modules.list;
  const Environment& environment = context.options().environment;
  return environment.architecture || environment.cublaslt ||
         std::any_of(list.begin(), list.end(),
                     [](const Module& module) { return quantizes(recipe_of(module)); });
}

template <const ModuleRule& kRule>
void judge_recipes(const Context& context, Findings& out) {
  if (concerns(context)) report_modules(context, kRule, out);
}

constexpr Rule kQuantizationRules[] = {
    {"C12", "quantized-bias", "a bias gradient that a quantizing module queues nowhere",
     Family::Capture, Pass::Modules, judge_recipes<kQuantizedBias>},
    {"C13", "weight-cache-baked-in", "a quantized weight that no replay makes anew",
     Family::Capture, Pass::Modules, judge_modules<kBakedCache>},
    {"C14", "recipe-refused", "a recipe that the device does not run", Family::Capture,
     Pass::Modules, judge_recipes<kRecipeRefused>},
    {"C15", "sizes-on-the-host", "a grouped module that has to fetch the sizes of its groups",
     Family::Capture, Pass::Modules, judge_recipes<kSizesOnTheHost>},
    {"Y07", "stale-weight", "a quantized weight that is read before it is made anew",
     Family::Replay, Pass::Gradients, stale_weight},
    {"T15", "amax-order", "reductions of magnitudes that do not meet", Family::Transfers,
     Pass::Gradients, amax_order},
};

}  // namespace

std::span<const Rule> quantization_rules() {
  return kQuantizationRules;
}

}  // namespace capo::rules
