#include "run/setup/step_layers.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/frameworks/te/main_grad.h"
#include "core/plan/sizes.h"
#include "run/modules/module.h"

#include <fmt/format.h>

#include <utility>

namespace capo::run {

namespace {

using Refusal = std::optional<std::string>;

std::string named(const Module& module) {
  return fmt::format("module `{}`", module.name);
}

bool attends(const Module& module) {
  return is_attention(*module.kind) || has_two_halves(*module.kind);
}

Refusal missing(const Module& module) {
  const auto lacks = [&](const char* what) {
    return fmt::format("{} does not say its {}", named(module), what);
  };
  if (!module.kind) return lacks("kind");
  if (!module.dtype) return lacks("dtype");
  if (!module.shape.tokens) return lacks("tokens");
  if (!module.shape.hidden) return lacks("hidden");
  if (attends(module)) {
    if (!module.shape.heads) return lacks("heads");
    if (!module.shape.kv_heads) return lacks("kv_heads");
    if (!module.shape.head_dim) return lacks("head_dim");
    if (!module.shape.sequence) return lacks("sequence");
  }
  if (!is_attention(*module.kind) && !module.shape.ffn) return lacks("ffn");
  const bool router = has_router(module);
  if ((router || is_grouped(*module.kind)) && !module.shape.groups) return lacks("groups");
  if (router && !module.shape.top_k) return lacks("top_k");
  return std::nullopt;
}

// Every kv head is read by as many heads, a microbatch is whole sequences, and a token chooses each
// group once.
Refusal uneven(const Module& module) {
  const ModuleShape& shape = module.shape;
  if (has_router(module) && *shape.top_k > *shape.groups) {
    return fmt::format("{} has {} groups, and top_k {} is more", named(module), *shape.groups,
                       *shape.top_k);
  }
  if (!attends(module)) return std::nullopt;
  if (*shape.heads % *shape.kv_heads != 0) {
    return fmt::format("{} has {} heads, which is no multiple of its {} kv_heads", named(module),
                       *shape.heads, *shape.kv_heads);
  }
  if (*shape.tokens % *shape.sequence != 0) {
    return fmt::format("{} has {} tokens, which are no whole sequences of {}", named(module),
                       *shape.tokens, *shape.sequence);
  }
  return std::nullopt;
}

Refusal not_run(const Module& module) {
  if (!module.kind) return std::nullopt;
  if (!module.unrun.empty()) {
    return fmt::format(
        "{} takes its sizes from a configuration with {}, which no module has that capo runs: "
        "declare its shape",
        named(module), module.unrun);
  }
  const bool experts = module.shape.groups || module.shape.top_k;
  if (has_two_halves(*module.kind) && experts && !has_router(module)) {
    return fmt::format("{} is dense, and its shape declares {} of experts", named(module),
                       module.shape.groups ? "groups" : "top_k");
  }
  if (has_router(module) && module.flags.bias) {
    return fmt::format("{} has biases, and capo runs no biases of experts behind a router",
                       named(module));
  }
  if (module.flags.scale_bias && module.kind != ModuleKind::GroupedLinearOp) {
    return fmt::format("{} scales its bias, which only a grouped-linear-op does", named(module));
  }
  if (module.flags.scale_bias && !module.flags.bias) {
    return fmt::format("{} scales a bias that it does not have", named(module));
  }
  return std::nullopt;
}

// A main_grad that a product cannot write is refused before anything runs. The sizes alone do
// not say which of an MLP's two weights is meant.
Refusal bad_main_grad(const Module& module) {
  if (!module.main_grad || !module.flags.single_weight || !is_grouped(*module.kind) ||
      !module.flags.fuse_wgrad_accumulation) {
    return std::nullopt;
  }
  const ModuleShape& shape = module.shape;
  const bool mlp = is_mlp(*module.kind);
  const auto refusal = [&](std::int64_t out, std::int64_t in) {
    return gradients::main_grad_refusal(*module.main_grad,
                                        {.groups = *shape.groups, .out = out, .in = in});
  };
  auto why = refusal(mlp ? 2 * *shape.ffn : *shape.ffn, *shape.hidden);
  if (why && mlp && !refusal(*shape.hidden, *shape.ffn)) return std::nullopt;
  if (why) return fmt::format("{}: {}", named(module), *why);
  return std::nullopt;
}

LayerShape shape_of(const Module& module, const LayerFacts& facts) {
  LayerShape shape = declared_shape(module);
  shape.bias = module.flags.bias;
  shape.scale_bias = module.flags.scale_bias;
  shape.split = shape.grouped && (module.splits == Splits::Host || module.dtype == DataType::Fp32);
  shape.copies_input = !facts.aliases.input;
  shape.copies_grad_output = !facts.aliases.grad_output;
  shape.needs_grad_input = module.flags.input_requires_grad;
  return shape;
}

// TransformerEngine's operations make the bias gradient with B, its grouped-linear does on the
// grouped path, and so do all that quantize. If its plan is run, eager execution rounds as its
// modules do.
bool makes_bias_with_backward(const PlannedStep& step, const Module& module) {
  if (scaling_of(module)) return true;  // W has codes of the gradient and not the gradient
  if (step.view().plan().kind != PlanKind::Te) return false;
  const bool grouped_path =
      facts_of(*module.kind).bias_gradient == BiasGradientMade::WithWeightSplit &&
      module.splits != Splits::Host && module.dtype != DataType::Fp32;
  return gradients::is_operation(*module.kind) || grouped_path || quantizes(recipe_of(module));
}

// A weight that no optimizer changes is the same in every step, and capo's own graphs find the
// codes of the step.
std::optional<WeightCache> age_of_codes(const PlannedStep& step, const Module& module) {
  if (step.view().plan().kind != PlanKind::Te || module.flags.frozen_weight) return std::nullopt;
  return scaling_of(module) ? module.weight_cache : std::nullopt;
}

// After a norm, between the products of an MLP, and by a recipe, W reads what forward made.
Refusal wrong_alias(const Module& module, const LayerFacts& facts) {
  const bool codes = scaling_of(module).has_value();
  // Sizes that lie in the input are read there by every weight gradient.
  const bool for_sizes = is_grouped(*module.kind) && module.splits == Splits::Input;
  const bool made = has_swiglu(*module.kind) || has_norm(*module.kind) ||
                    has_two_halves(*module.kind) || (codes && !for_sizes);
  if (codes && facts.aliases.grad_output) {
    return fmt::format(
        "{}: what its weight gradient reads is no alias of the incoming gradient, as the plan has "
        "it, but codes of it",
        named(module));
  }
  if (!made || !facts.aliases.input) return std::nullopt;
  return fmt::format(
      "{}: what its weight gradient reads is no alias of its input, as the plan has it, but what "
      "forward keeps",
      named(module));
}

// Compares the memory that the plan gives a layer, by its declaration, with what its kernels need.
Refusal too_small(const Module& module, const LayerShape& shape, const LayerFacts& facts) {
  const auto bytes = [&](BufferKind kind) { return facts.bytes[as_index(kind)]; };
  const std::int64_t input = module.splits == Splits::Input && shape.grouped
                                 ? sizes_offset(shape) + shape.groups * 8
                                 : input_row_bytes(shape);
  const std::int64_t output = shape.tokens * output_columns(shape) * bytes_of(shape.type);
  const auto lacks = [&](const char* what, std::int64_t needed, BufferKind kind) {
    return fmt::format("{} takes {} bytes of {}, and the model file gives it {}", named(module),
                       needed, what, bytes(kind));
  };
  if (bytes(BufferKind::StaticInput) < input) return lacks("input", input, BufferKind::StaticInput);
  if (bytes(BufferKind::Output) < output) return lacks("output", output, BufferKind::Output);
  const std::int64_t kept = kept_bytes(shape);
  if (bytes(BufferKind::Activations) < kept) {
    return lacks("activations", kept, BufferKind::Activations);
  }
  const std::int64_t weight =
      shape.scaling && facts.keeps_quantized_weight ? quantized_weight_bytes(shape) : 0;
  if (bytes(BufferKind::QuantizedWeight) < weight) {
    return lacks("quantized weight", weight, BufferKind::QuantizedWeight);
  }
  const std::int64_t copied = shape.scaling ? coded_gradient_bytes(shape) : output;
  const std::int64_t operands = facts.delayed && shape.copies_grad_output ? copied : 0;
  if (bytes(BufferKind::Operands) < operands) {
    return lacks("operands", operands, BufferKind::Operands);
  }
  return std::nullopt;
}

std::string place_of(const StepLayer& layer) {
  return fmt::format("layer {} of chunk {} of rank {}", layer.layer, layer.chunk, layer.rank);
}

// A layer must read what the one before it makes, and hand a gradient back.
Refusal misfit(const StepLayer& from, const StepLayer& to) {
  if (!to.shape.needs_grad_input) {
    return fmt::format("{} computes no gradient of its input, which {} waits for", place_of(to),
                       place_of(from));
  }
  if (output_columns(from.shape) == to.shape.hidden && from.shape.tokens == to.shape.tokens &&
      from.shape.type == to.shape.type) {
    return std::nullopt;
  }
  return fmt::format("{} makes {} x {} of {}, and {} reads {} x {} of {}", place_of(from),
                     from.shape.tokens, output_columns(from.shape), name_of(from.shape.type),
                     place_of(to), to.shape.tokens, to.shape.hidden, name_of(to.shape.type));
}

}  // namespace

Result<StepLayers, std::string> StepLayers::of(const PlannedStep& step) {
  StepLayers layers;
  const BufferTable& table = step.view().table();
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    auto& first = layers.first_.emplace_back();
    for (std::int32_t chunk = 1; chunk <= static_cast<std::int32_t>(table.chunks(rank)); ++chunk) {
      first.push_back(layers.layers_.size());
      for (std::int32_t at = 0; at < table.layers(rank, chunk); ++at) {
        if (auto why = layers.add(step, rank, chunk, at)) return *why;
      }
    }
  }
  if (auto why = layers.misfit_of_stages(table, *step.captured().map)) return *why;
  return layers;
}

std::optional<std::string> StepLayers::add(const PlannedStep& step, std::int32_t rank,
                                           std::int32_t chunk, std::int32_t at) {
  const LayerFacts& facts = step.view().table().facts(rank, chunk, at);
  if (facts.module == nullptr) {
    return fmt::format("nothing is declared of layer {} of chunk {} of rank {}", at, chunk, rank);
  }
  const Module& module = *facts.module;
  if (auto why = module_refusal(module)) return why;
  StepLayer layer{.rank = rank,
                  .chunk = chunk,
                  .layer = at,
                  .shape = shape_of(module, facts),
                  .flags = module.flags,
                  .quantizes_each_time = facts.keeps_quantized_weight,
                  .codes_age = age_of_codes(step, module),
                  .bias_with_backward = makes_bias_with_backward(step, module),
                  .sizes_in_input = module.splits == Splits::Input && is_grouped(*module.kind)};
  if (auto why = wrong_alias(module, facts)) return why;
  if (auto why = too_small(module, layer.shape, facts)) return why;
  if (at > 0) {
    if (auto why = misfit(layers_.back(), layer)) return why;
  }
  all_grouped_ = all_grouped_ && layer.shape.grouped;
  add_parameters(layer);
  layers_.push_back(std::move(layer));
  return std::nullopt;
}

void StepLayers::add_parameters(StepLayer& layer) {
  const ModuleFlags& flags = layer.flags;
  for (ParameterForm& form : parameter_forms(layer.shape, flags.single_weight)) {
    if (is_bias(form.role)) form.single = flags.single_bias;
    form.fused = is_of_product(form.role) && flags.fuse_wgrad_accumulation;
    form.name = fmt::format("{}: {}", place_of(layer), name_of(form.role, layer.shape.kind));
    layer.parameter[as_index(form.role)] = static_cast<std::uint32_t>(parameters_.size());
    parameters_.push_back(std::move(form));
    owner_.push_back(layers_.size());
  }
}

std::optional<std::string> StepLayers::misfit_of_stages(const BufferTable& table,
                                                        const StageMap& map) const {
  for (std::int32_t stage = 0; map.wired() && stage < map.stages(); ++stage) {
    const std::int32_t next = map.after(stage);
    if (next == kNoStage) continue;
    const StageMap::Place& from = map.home(stage);
    const StageMap::Place& to = map.home(next);
    const std::int32_t last = table.layers(from.rank, from.chunk);
    if (last == 0 || table.layers(to.rank, to.chunk) == 0) {
      return fmt::format("chunk {} of rank {} has no layers, and a pipeline of stages needs them",
                         last == 0 ? from.chunk : to.chunk, last == 0 ? from.rank : to.rank);
    }
    if (auto why = misfit(at(from.rank, from.chunk, last - 1), at(to.rank, to.chunk, 0))) {
      return why;
    }
  }
  return std::nullopt;
}

std::optional<std::string> module_refusal(const Module& module) {
  if (auto why = not_run(module)) return why;
  if (auto why = missing(module)) return why;
  if (auto why = uneven(module)) return why;
  if (rough_bytes(declared_shape(module)) > kMostBytes) {
    return fmt::format("{} takes more than 2^44 bytes, which is more than capo runs",
                       named(module));
  }
  return bad_main_grad(module);
}

namespace {

// The kind whose cells a parameter has. In a layer that is made of modules the router and both
// products of the attention are linears, the first of these behind a norm, and each product of the
// experts is a grouped linear.
ModuleKind kind_with_cells(const LayerShape& shape, Role role) {
  if (!is_made_of_modules(shape.kind)) return shape.kind;
  switch (role) {
    case Role::Router:
    case Role::Projection:
    case Role::ProjectionBias:
      return ModuleKind::Linear;
    case Role::Qkv:
    case Role::QkvBias:
      return ModuleKind::LayerNormLinear;
    default:
      return has_router(shape) ? ModuleKind::GroupedLinear : ModuleKind::LayerNormMlp;
  }
}

}  // namespace

ParameterCells cells_of(const StepLayer& layer, Role role, gradients::Contract whose) {
  using gradients::Cell;
  constexpr Cell kToAutograd{gradients::Returned::Gradient, gradients::Destination::AddsToGrad,
                             gradients::Written::WithB, gradients::Flagged::Never};
  if (is_of_norm(role)) return {kToAutograd, kToAutograd};
  ModuleFlags flags = layer.flags;
  // If there are two weights, the first is the frozen one.
  flags.frozen_weight = flags.frozen_weight && (role == Role::First || role == Role::FirstBias);
  const bool bias = is_bias(role);
  const bool with_backward = bias && layer.bias_with_backward;
  const auto cell = [&](bool delays) {
    const bool delayed = delays && !with_backward;
    flags.delay_wgrad = delayed;
    // TransformerEngine's basic operation has no W; capo's has, and it is that of a linear.
    const bool linear = delayed && layer.shape.kind == ModuleKind::BasicLinearOp;
    const ModuleKind kind = linear ? ModuleKind::Linear : kind_with_cells(layer.shape, role);
    const auto found =
        bias ? bias_contract(kind, flags, whose) : contract_under(kind, flags, whose);
    CAPO_ASSERT(found.has_value(), "kinds without a contract are refused before");
    return *found;
  };
  const Cell whole = cell(false);
  return {whole, cell(true)};
}

gradients::Cell replayed(gradients::Cell cell, gradients::Contract whose) {
  using gradients::Destination;
  if (whose == gradients::Contract::Sound) return cell;
  if (cell.destination == Destination::AssignsGrad ||
      cell.destination == Destination::AssignsGradIfNone) {
    cell.destination = Destination::AssignsTemporary;
  } else if (cell.destination == Destination::FirstForwardOverwrites) {
    cell.destination = Destination::AddsToMainGrad;
  }
  return cell;
}

}  // namespace capo::run
