#include "core/frameworks/te/contract.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/model/module_kinds.h"

#include <algorithm>
#include <cstddef>

namespace capo::gradients {

namespace {

constexpr Cell kToAutograd{Returned::Gradient, Destination::AddsToGrad, Written::WithB,
                           Flagged::Never};
constexpr Cell kFrozen{Returned::Nothing, Destination::Nowhere, Written::Never, Flagged::Never};

constexpr Cell fused(Returned returned, Written written, Flagged flagged) {
  return {returned, Destination::AddsToMainGrad, written, flagged};
}

// The sound contract has one cell a mode, which holds for every kind.
constexpr std::array<Cell, kGradientModes.size()> kSound{{
    kToAutograd,
    {Returned::Nothing, Destination::AddsToGrad, Written::WithW, Flagged::Never},
    fused(Returned::Nothing, Written::WithB, Flagged::Never),
    fused(Returned::Dummy, Written::WithB, Flagged::AtB),
    fused(Returned::Nothing, Written::WithW, Flagged::Never),
    fused(Returned::Zeros, Written::WithW, Flagged::AtW),
}};

// TE's cells are read as follows: Returned in linear.py, layernorm_linear.py, layernorm_mlp.py and
// grouped_linear.py of module/, ops/basic/grouped_linear.py and ops/fused/grouped_mlp.py; the
// assignment in module/base.py:1963 and the backward_dw() of the grouped ones.
constexpr Cell kAssigned{Returned::Nothing, Destination::AssignsGrad, Written::WithW,
                         Flagged::Never};
constexpr Cell kFusedB = fused(Returned::Nothing, Written::WithB, Flagged::Never);
constexpr Cell kFusedW = fused(Returned::Nothing, Written::WithW, Flagged::Never);
constexpr Cell kSharedB = fused(Returned::SharedDummy, Written::WithB, Flagged::AtB);
constexpr Cell kSharedAhead = fused(Returned::SharedDummy, Written::WithW, Flagged::AtB);

}  // namespace

// Each row is a mode; its cells are those of linear, layernorm-linear, layernorm-mlp,
// grouped-linear, grouped-linear-op and grouped-mlp.
struct TeCells {
  std::array<std::array<Cell, kColumns.size()>, kGradientModes.size()> rows;
};

constexpr TeCells kCellsOfD0067d0da{{{
    {kToAutograd, kToAutograd, kToAutograd, kToAutograd, kToAutograd, kToAutograd},
    {kAssigned,
     kAssigned,
     kAssigned,
     {Returned::Uninitialised, Destination::AssignsGrad, Written::WithW, Flagged::Never},
     kAssigned,
     kAssigned},
    {kFusedB, kFusedB, kFusedB, kFusedB, kFusedB, kFusedB},
    {kSharedB, kSharedB, fused(Returned::Dummy, Written::WithB, Flagged::AtB), kSharedB, kSharedB,
     kSharedB},
    {kFusedW, kFusedW, kFusedW, kFusedW, kFusedW, kFusedW},
    {kSharedAhead, kSharedAhead, fused(Returned::Dummy, Written::WithW, Flagged::AtB), kSharedAhead,
     kSharedAhead, kSharedAhead},
}}};

namespace {

constexpr Defect kAssigns{'a',
                          "W assigns .grad: a second microbatch replaces the first, unless a hook "
                          "moved it to main_grad meanwhile",
                          "module/base.py:1963, and backward_dw() of the grouped ones"};
constexpr Defect kGarbage{'b',
                          "B hands autograd a buffer that was allocated and not written; .grad is "
                          "garbage until W replaces it, and whoever reads it before gets that",
                          "module/grouped_linear.py:1193,1406"};
constexpr Defect kAhead{'c',
                        "grad_added_to_main_grad is set at B while W is still queued: a reduction "
                        "between the two takes an incomplete main_grad for a complete one",
                        ""};
constexpr Defect kView{'d',
                       "a live view of main_grad goes to autograd and the flag stays unset: a "
                       "reader that adds .grad doubles the gradient",
                       "ops/basic/basic_linear.py:1078-1114"};

constexpr std::array<ConditionalDefect, 15> kConditional{{
    {"overwrite_main_grad and fuse",
     "every product overwrites, not only the first of a step: the last microbatch remains, unless "
     "somebody takes main_grad after each",
     ""},
    {"overwrite_main_grad and fuse, basic-linear-op and its fused backward forms", kView.text,
     kView.source},
    {"fuse, grouped-mlp up to 2.14 (pull request 2871)",
     "B hands autograd main_grad itself unless the parameter has the flag, or, under "
     "overwrite_main_grad, in any case; of several weights also if W has yet to write it: a reader "
     "that adds .grad doubles the gradient. One weight under overwrite_main_grad gets a buffer of "
     "its own, and main_grad never changes",
     "ops/fused/backward_grouped_mlp.py of 4e57c218b's parent"},
    {"is_first_microbatch and fuse, modules",
     "the product of the microbatch whose forward was first overwrites whenever it runs, and "
     "erases "
     "what came before it; under capture the flag is None or False, and the product adds to what "
     "the last step left. Operations never look at it",
     ""},
    {"delay, replayed",
     "the Python that sets .grad runs at capture only: without fuse every replay loses the "
     "gradient, and with it still that of a module's bias",
     ""},
    {"delay and bias, modules",
     "the bias gradient is assigned only where .grad is None: that of the second microbatch is "
     "dropped",
     "module/base.py:1966"},
    {"delay and frozen weight",
     "nothing is queued, and W raises \"Pop empty queue\", eager runs included; grouped-linear and "
     "the operations return in silence. layernorm-mlp pops twice, fc2 first: with one of its "
     "weights frozen it mixes them up or raises",
     "module/base.py:1943"},
    {"delay and a weight of several parameters",
     ".grad is set on a temporary concatenation, and the parameters get none; with fuse the "
     "temporary has no main_grad: AttributeError",
     ""},
    {"zero_out_wgrad, all but layernorm-mlp",
     "the dummy is one tensor for all weights of its shape and type: an addition in place through "
     "one .grad is seen in all",
     "module/base.py:134"},
    {"delay and sharded weight",
     "linear and layernorm-linear never reduce-scatter; grouped-linear does at B, before the "
     "gradient exists; grouped-linear-op and grouped-mlp refuse",
     "module/grouped_linear.py:1504"},
    {"frozen weight, grouped-mlp", "both weight products are computed if either weight needs one",
     "ops/fused/grouped_mlp.py:1083"},
    {"input needs no gradient, operations",
     "a weight that needs a gradient has the input's computed too", ""},
    {"single weight whose main_grad has the right shape and is not contiguous",
     "grouped-linear and grouped-linear-op fail with PyTorch's plain message of view(-1); "
     "grouped-mlp writes into a copy, main_grad never changes, and the flag says that it has",
     "ops/_common.py:177, tensor/storage/grouped_tensor_storage.py:530"},
    {"delay and hooks of one's own, operations, replayed",
     "the hooks run for modules only: that of an operation's weight never does", "graph.py:1187"},
    {"attr, replayed, a reader that resets the flag",
     "a replay cannot set the flag again, and the dummy is taken for the gradient; Megatron's DDP "
     "therefore never resets it with TE's graphs, Megatron-FSDP does after each use",
     ""},
}};

constexpr bool exists(ModuleKind kind, bool delays) {
  return facts_of(kind).contract_column && (!delays || facts_of(kind).delays);
}

Destination overwriting(ModuleKind kind, const ModuleFlags& flags, Contract whose) {
  if (whose == Contract::Sound) {
    return flags.overwrite_main_grad || flags.is_first_microbatch
               ? Destination::FirstWriteOverwrites
               : Destination::AddsToMainGrad;
  }
  if (flags.overwrite_main_grad) return Destination::OverwritesMainGrad;
  return flags.is_first_microbatch && !is_operation(kind) ? Destination::FirstForwardOverwrites
                                                          : Destination::AddsToMainGrad;
}

}  // namespace

GradientMode gradient_mode_of(const ModuleFlags& flags) {
  if (!flags.fuse_wgrad_accumulation) {
    return flags.delay_wgrad ? GradientMode::Delay : GradientMode::Vanilla;
  }
  if (flags.grad_added_to_main_grad) {
    return flags.delay_wgrad ? GradientMode::DelayFuseAttr : GradientMode::FuseAttr;
  }
  return flags.delay_wgrad ? GradientMode::DelayFuse : GradientMode::Fuse;
}

std::optional<Cell> contract(ModuleKind kind, GradientMode mode, Contract whose,
                             const te::Version& version) {
  const auto row = as_index(mode);
  const Cell& sound = kSound[row];
  if (!exists(kind, sound.written == Written::WithW)) return std::nullopt;
  if (whose == Contract::Sound) return sound;
  const auto* column = std::find(kColumns.begin(), kColumns.end(), *facts_of(kind).contract_column);
  CAPO_ASSERT(column != kColumns.end(), "a kind names a column that there is");
  return version.cells->rows[row][as_index(column - kColumns.begin())];
}

std::optional<Cell> contract_under(ModuleKind kind, const ModuleFlags& flags, Contract whose,
                                   const te::Version& version) {
  std::optional<Cell> cell = contract(kind, gradient_mode_of(flags), whose, version);
  if (!cell) return std::nullopt;
  if (flags.frozen_weight) return kFrozen;
  if (!flags.fuse_wgrad_accumulation) return cell;
  cell->destination = overwriting(kind, flags, whose);
  const bool dummy = cell->returned == Returned::Dummy || cell->returned == Returned::SharedDummy;
  if (dummy && flags.zero_out_wgrad) cell->returned = Returned::Zeros;
  if (whose == Contract::Te && kind == ModuleKind::BasicLinearOp && flags.overwrite_main_grad) {
    cell->returned = Returned::LiveView;
    cell->flagged = Flagged::Never;
  }
  return cell;
}

std::optional<Cell> bias_contract(ModuleKind kind, const ModuleFlags& flags, Contract whose) {
  if (!exists(kind, flags.delay_wgrad)) return std::nullopt;
  if (!flags.bias) return kFrozen;
  // TE's operations make the bias gradient with B in any case.
  if (!flags.delay_wgrad || (whose == Contract::Te && is_operation(kind))) return kToAutograd;
  return Cell{
      Returned::Nothing,
      whose == Contract::Sound ? Destination::AddsToGrad : Destination::AssignsGradIfNone,
      Written::WithW,
      Flagged::Never,
  };
}

std::vector<Defect> defects_of(const Cell& cell) {
  std::vector<Defect> found;
  if (cell.destination == Destination::AssignsGrad) found.push_back(kAssigns);
  if (cell.returned == Returned::Uninitialised) found.push_back(kGarbage);
  if (cell.flagged == Flagged::AtB && cell.written == Written::WithW) found.push_back(kAhead);
  if (cell.returned == Returned::LiveView) found.push_back(kView);
  return found;
}

std::span<const ConditionalDefect> conditional_defects() {
  return kConditional;
}

std::optional<Products> products(ModuleKind kind, const ModuleFlags& flags, Contract whose) {
  if (is_made_of_modules(kind)) return std::nullopt;
  const bool trains = !flags.frozen_weight || has_two_weights(kind);
  Products needed{.input = flags.input_requires_grad || has_norm(kind),
                  .weight = trains,
                  .frozen_weight = false};
  if (whose == Contract::Te) {
    if (is_operation(kind) && trains) needed.input = true;
    needed.frozen_weight = kind == ModuleKind::GroupedMlp && flags.frozen_weight;
  }
  return needed;
}

bool hands_a_gradient(ModuleKind kind, const ModuleFlags& flags, Contract whose) {
  if (is_made_of_modules(kind) || has_norm(kind)) return true;
  if (flags.input_requires_grad) return true;
  ModuleFlags trained = flags;
  trained.frozen_weight = flags.frozen_weight && !has_two_weights(kind);
  const std::optional<Cell> weight = contract_under(kind, trained, whose);
  const std::optional<Cell> bias = bias_contract(kind, flags, whose);
  return (weight && weight->returned != Returned::Nothing) ||
         (bias && bias->returned != Returned::Nothing);
}

bool te_raises_on_empty_queue(ModuleKind kind) {
  return facts_of(kind).raises_on_empty_queue;
}

bool is_operation(ModuleKind kind) {
  return facts_of(kind).operation;
}

bool te_makes_bias_gradient_with_weight(const Module& module) {
  if (!module.kind || (quantizes(recipe_of(module)) && !module.flags.high_precision_backward))
    return false;
  switch (facts_of(*module.kind).bias_gradient) {
    case BiasGradientMade::WithWeight:
      return true;
    case BiasGradientMade::WithWeightSplit:
      return !module.splits || module.splits == Splits::Host;
    case BiasGradientMade::WithBackward:
      return false;
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(GradientMode mode) {
  switch (mode) {
    case GradientMode::Vanilla:
      return "vanilla";
    case GradientMode::Delay:
      return "delay";
    case GradientMode::Fuse:
      return "fuse";
    case GradientMode::FuseAttr:
      return "fuse+attr";
    case GradientMode::DelayFuse:
      return "delay+fuse";
    case GradientMode::DelayFuseAttr:
      return "delay+fuse+attr";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Returned returned) {
  switch (returned) {
    case Returned::Gradient:
      return "the gradient";
    case Returned::Nothing:
      return "nothing";
    case Returned::Dummy:
      return "a dummy";
    case Returned::SharedDummy:
      return "a shared dummy";
    case Returned::Zeros:
      return "zeros";
    case Returned::Uninitialised:
      return "uninitialised";
    case Returned::LiveView:
      return "a view of main_grad";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Destination destination) {
  switch (destination) {
    case Destination::Nowhere:
      return "goes nowhere";
    case Destination::AddsToGrad:
      return "adds to .grad";
    case Destination::AssignsGrad:
      return "assigns .grad";
    case Destination::AssignsGradIfNone:
      return "assigns .grad if none";
    case Destination::AssignsTemporary:
      return "assigns a temporary's .grad";
    case Destination::AddsToMainGrad:
      return "adds to main_grad";
    case Destination::OverwritesMainGrad:
      return "overwrites main_grad";
    case Destination::FirstForwardOverwrites:
      return "adds to main_grad, the first forward's overwrites";
    case Destination::FirstWriteOverwrites:
      return "adds to main_grad, the first written overwrites";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Written written) {
  switch (written) {
    case Written::Never:
      return "-";
    case Written::WithB:
      return "B";
    case Written::WithW:
      return "W";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Flagged flagged) {
  switch (flagged) {
    case Flagged::Never:
      return "-";
    case Flagged::AtB:
      return "B";
    case Flagged::AtW:
      return "W";
  }
  CAPO_UNREACHABLE();
}

}  // namespace capo::gradients
