// The rules about what becomes of the gradients of declared modules under CUDA graphs.
//
//   [1, -1, -1.5]           a delayed, unfused weight gradient that no replay hands over: G01
//
// Each but G06 is a fact about TE's captures: modules.h says how much it weighs under which plan.
// Tested by module_rules_test.cpp, module_gradients_test.cpp and tests/corpus/rules/G01 to G11.

#include "core/base/assert.h"
#include "core/frameworks/te/contract.h"
#include "core/frameworks/te/main_grad.h"
#include "core/model/module_kinds.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/modules.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <set>
#include <span>
#include <string_view>

namespace capo::rules {

namespace {

// Whether PyTorch itself takes the backward of a module apart: its tables with I and W are run by
// torch.distributed.pipelining, whose W asks autograd for the weights' gradients and knows no
// queue.
//
// A table is run so as long as no plan says that somebody else captures its actions. Then
// shared_weight (G06) alone judges shared weights.
bool split_by_torch(const Context& context, const Module& module) {
  const Form form = context.input().form;
  const bool table = form == Form::TorchCompute || form == Form::TorchComms;
  return table && !context.options().plan.kind && module.flags.shared_weight &&
         module.flags.delay_wgrad && !module.flags.fuse_wgrad_accumulation &&
         !module.flags.frozen_weight;
}

bool loses_weight_gradient(const Context& context, const Module& module) {
  return queues_weight_gradient(module) && !module.flags.fuse_wgrad_accumulation &&
         module.kind != ModuleKind::GroupedLinear && !split_by_torch(context, module);
}

ModuleFinding describe_wgrad_lost(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` loses its weight gradient, which is delayed and not fused: `.grad` is "
              "assigned when {} is captured, and by no replay",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its replays compute a gradient that nobody reads",
          .help = "set fuse_wgrad_accumulation, so that the weight gradient adds into main_grad",
          .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

// A weight gradient that is delayed and not fused ends nowhere under CUDA graphs.
//
//   [1, -1, -1.5]     W computes the gradient, and Python then says `.grad = ...`: at capture. A
//                     replay runs kernels only, so autograd's `.grad` never sees what it computed.
//
// The rule concerns neither a frozen weight (G04) nor grouped-linear, which hands autograd a buffer
// (G03), nor the shared weight of a step that PyTorch itself takes apart (G06).
constexpr ModuleRule kWgradLost{.shows_at = ShowsAt::WeightGradient,
                                .at_fault = loses_weight_gradient,
                                .describe = describe_wgrad_lost};

bool loses_bias_gradient(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && module.flags.bias &&
         gradients::te_makes_bias_gradient_with_weight(module);
}

ModuleFinding describe_bias_gradient_lost(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` loses the gradient of its bias, which the delayed product makes: `.grad` "
          "is assigned when {} is captured, and by no replay",
          use.module->name, words::placed(context, *use.order, use.at)),
      .label = "its replays compute a bias gradient that nobody reads",
      .help = "add the bias outside of the module, or do not delay its weight gradient",
      .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

// The gradient of a bias that comes out of the delayed product is lost under CUDA graphs.
//
//   [1, -1, -1.5]     the product of W makes both gradients; the weight's goes to main_grad, the
//                     bias's to `.grad`, by an assignment in Python that no replay runs
//
// The product of W makes it in linear, layernorm-linear and layernorm-mlp (so also in a
// transformer-layer) and on the split path of the module grouped-linear, which is the one without
// splits on the device; everywhere else, and of a quantized gradient, B makes it. (TE's capture
// of one with bias and delay fails in warm-up.) A recipe that is not declared is none.
constexpr ModuleRule kBiasGradientLost{.shows_at = ShowsAt::WeightGradient,
                                       .at_fault = loses_bias_gradient,
                                       .describe = describe_bias_gradient_lost};

bool returns_unwritten_memory(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && !module.flags.fuse_wgrad_accumulation &&
         module.kind == ModuleKind::GroupedLinear;
}

ModuleFinding describe_gradient_uninitialised(const Context& context, const ModuleUse& use) {
  const std::vector<std::size_t> weights = use.entries({Kind::BackwardWeight}, 1);
  std::vector<std::size_t> replayed{use.at};
  replayed.insert(replayed.end(), weights.begin(), weights.end());
  return {.message = fmt::format(
              "module `{}` returns memory that nobody has written: {} hands autograd the buffer "
              "that its delayed weight gradient fills later, and autograd adds it to `.grad`",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "returns an uninitialised buffer",
          .help = "set fuse_wgrad_accumulation, so that the weight gradient adds into main_grad",
          .replayed = std::move(replayed),
          .second_label = "this fills it"};
}

// The module grouped-linear returns memory that nobody has written.
//
//   [1, -1, -1.5]     B allocates the weight gradient, queues it for W and hands the same tensor to
//                     autograd, which adds what happens to lie there to `.grad`; W fills it later
//
// It does so only without fuse_wgrad_accumulation, and no other module does: the operation returns
// None. Elsewhere such a gradient is lost and not made up (G01).
constexpr ModuleRule kGradientUninitialised{.shows_at = ShowsAt::Backward,
                                            .at_fault = returns_unwritten_memory,
                                            .describe = describe_gradient_uninitialised};

bool delays_frozen_weight(const Context& /*context*/, const Module& module) {
  return module.flags.delay_wgrad && module.flags.frozen_weight &&
         (!module.kind || gradients::te_raises_on_empty_queue(*module.kind));
}

ModuleFinding describe_frozen_weight(const Context& context, const ModuleUse& use) {
  const bool two = use.module->kind == ModuleKind::LayerNormMlp;
  return {
      .message = fmt::format("module `{}` delays the gradient of a frozen weight: {} {}",
                             use.module->name, words::placed(context, *use.order, use.at),
                             two ? "takes two entries from its queue where one is, and that for "
                                   "the wrong weight"
                                 : "takes an entry from a queue that is empty"),
      .label = two ? "mixes up fc1 and fc2" : "nothing is queued for it",
      .help = "do not delay the weight gradient of a module with a frozen weight"};
}

// A frozen weight queues nothing, and the delayed weight gradient takes something all the same.
//
//   [1, -1, -1.5]     W finds the queue empty: "Pop empty queue", outside of graphs as well
//
// A layernorm-mlp has two weights and W takes two entries, that of fc2 first; with one of them
// frozen there is one entry, which is taken for the other weight's. grouped-linear and the
// operations look before they take, so they are not at fault.
constexpr ModuleRule kFrozenWeight{.shows_at = ShowsAt::WeightGradient,
                                   .at_fault = delays_frozen_weight,
                                   .describe = describe_frozen_weight};

bool doubles_gradient(const Context& /*context*/, const Module& module) {
  return module.kind == ModuleKind::BasicLinearOp && module.flags.fuse_wgrad_accumulation &&
         module.flags.overwrite_main_grad && !module.flags.frozen_weight;
}

ModuleFinding describe_double_accumulation(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` doubles its weight gradient: {} writes it to main_grad and returns a live "
          "view of main_grad, with grad_added_to_main_grad unset, as a gradient still to be "
          "added",
          use.module->name, words::placed(context, *use.order, use.at)),
      .label = "returns what main_grad already holds",
      .help = "clear main_grad before the step and leave overwrite_main_grad out"};
}

// ops.BasicLinear hands out main_grad itself as the gradient to be added to main_grad.
//
//   [1, -1]     with accumulate_into_main_grad and overwrite_main_grad, B writes main_grad,
//               returns a view of it to autograd and leaves grad_added_to_main_grad unset:
//               whoever adds `.grad` to main_grad, as Megatron's DDP does, doubles the gradient
//
// The operation keeps one flag for "write to main_grad" and "add to it". Modules and
// ops.GroupedLinear keep two.
constexpr ModuleRule kDoubleAccumulation{.shows_at = ShowsAt::Backward,
                                         .at_fault = doubles_gradient,
                                         .describe = describe_double_accumulation};

// The module of two layers of the chunk whose backward PyTorch takes apart; null if there is none.
const Module* shared_within(const Context& context, const OrderView& order, std::int32_t chunk) {
  std::set<const Module*> seen;
  const std::int32_t layers = distinct_layers(context, order.rank, chunk);
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const Module* module = context.module_of(order.rank, chunk, layer);
    if (split_by_torch(context, *module) && !seen.insert(module).second) return module;
  }
  return nullptr;
}

ModuleFinding describe_shared_weight(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "{} counts a weight of module `{}` twice, which two layers of {} share: PyTorch's "
              "split backward passes the earlier layer again on its way from the later one",
              words::placed(context, *use.order, use.at), use.module->name,
              words::part(context, *use.order, use.chunk)),
          .label = "adds one use of the weight twice",
          .help = "run this stage's backward whole, or give each layer a weight of its own"};
}

// PyTorch's split backward counts a weight twice that two layers of one stage share.
//
//   0F0,0I0,0W0     the input half keeps a gradient for each place where the weight is used; the
//                   weight half starts at each of them, and on its way from the later layer it
//                   passes the earlier one, which so counts a second time
//
// The rule concerns PyTorch's tables without a plan, and a stage that names the same module at
// least twice among its layers, which are on one path from output to input. A whole backward is
// right. TE's W has its own operands and counts each layer once, so under its plan such a weight is
// like any other.
void shared_weight(const Context& context, Findings& out) {
  std::set<const Module*> reported;
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (order.of(chunk).weights == 0) continue;
      const Module* module = shared_within(context, order, chunk);
      if (module == nullptr || !reported.insert(module).second || !out.found()) continue;
      const ModuleUse use{.module = module,
                          .order = &order,
                          .chunk = chunk,
                          .at = order.find(Kind::BackwardWeight, chunk, 0)};
      out.report(
          module_diagnostic(context, describe_shared_weight(context, use), use, Severity::Error));
    }
  }
}

// The weight that main_grad belongs to; nullopt if its sizes are not known.
std::optional<gradients::GroupedWeight> weight_of(const Module& module) {
  const ModuleShape& shape = module.shape;
  if (module.kind != ModuleKind::GroupedMlp && shape.groups && shape.ffn && shape.hidden)
    return gradients::GroupedWeight{*shape.groups, *shape.ffn, *shape.hidden};
  const auto& sizes = module.main_grad->shape;
  if (sizes.size() == 3) return gradients::GroupedWeight{sizes[0], sizes[1], sizes[2]};
  return std::nullopt;
}

std::optional<std::string> refusal(const Module& module) {
  const auto weight = weight_of(module);
  return weight ? gradients::main_grad_refusal(*module.main_grad, *weight) : std::nullopt;
}

std::string_view consequence_of_layout(const Module& module) {
  if (!module.kind) return "";
  switch (gradients::te_with_main_grad(*module.kind, *module.main_grad, *weight_of(module))) {
    case gradients::TeMainGrad::Writes:
      return "";
    case gradients::TeMainGrad::RefusesNamingIt:
      return "; TransformerEngine refuses it in backward";
    case gradients::TeMainGrad::FailsInView:
      return "; backward fails in view(-1)";
    case gradients::TeMainGrad::WritesCopySilently:
      return "; the gradient goes to a copy without a word, and main_grad never changes";
  }
  CAPO_UNREACHABLE();
}

bool has_unfit_main_grad(const Context& /*context*/, const Module& module) {
  return module.flags.single_weight && module.flags.fuse_wgrad_accumulation &&
         !module.flags.frozen_weight && module.main_grad && refusal(module);
}

ModuleFinding describe_main_grad_layout(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format("module `{}` cannot accumulate the gradient of its one weight at "
                                 "{}: {}{}",
                                 use.module->name, words::placed(context, *use.order, use.at),
                                 *refusal(*use.module), consequence_of_layout(*use.module)),
          .label = "writes to this main_grad",
          .help = "give the parameter a contiguous main_grad of shape (groups, out, in)"};
}

// One weight for all groups needs a main_grad that lies in memory as (groups, out, in).
//
//   shape (4, 64, 32), strides (2048, 1, 64)    the right shape, transposed: a grouped product
//                                               writes a copy, and main_grad never changes
//
// core/frameworks/te/main_grad.h decides what fits. The sizes are the module's groups, ffn and
// hidden; if they are not declared, or the module is a grouped-mlp, which has two weights, the
// sizes are those of a main_grad with three dimensions.
constexpr ModuleRule kMainGradLayout{.shows_at = ShowsAt::Backward,
                                     .at_fault = has_unfit_main_grad,
                                     .describe = describe_main_grad_layout};

bool reduces_on_lost_hooks(const Context& /*context*/, const Module& module) {
  return module.flags.delay_wgrad && module.flags.wgrad_hooks && module.kind &&
         gradients::is_operation(*module.kind);
}

ModuleFinding describe_hooks_not_run(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` is never reduced: after a replay of {} TransformerEngine runs the hooks "
              "of its modules, not of its operations, and its reductions hang on them",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its replays run no hook of an operation",
          .help =
              "take the module of that name instead of the operation, or reduce when the step "
              "is over",
          .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

// Reductions that hang on the weight-gradient hooks of an operation never start under CUDA graphs.
//
//   [1, -1, -1.5]     the replay of W runs the graph, then the hooks of its modules; operations,
//                     which have the same list of hooks, are left out
//
// skip_backward_post_hook took the reduction off autograd's hook, so nothing is left that would
// start it: the parameter is never reduced.
constexpr ModuleRule kHooksNotRun{.shows_at = ShowsAt::WeightGradient,
                                  .at_fault = reduces_on_lost_hooks,
                                  .describe = describe_hooks_not_run};

bool reduces_in_any_order(const Context& /*context*/, const Module& module) {
  return module.flags.delay_wgrad && module.flags.wgrad_hooks && module.grad_buckets > 1 &&
         module.kind && is_made_of_modules(*module.kind);
}

ModuleFinding describe_set_order(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` makes {} gradient buckets ready within {}, in an order that "
          "TransformerEngine takes from a set: their reductions may start in another order on "
          "another rank",
          use.module->name, use.module->grad_buckets, words::placed(context, *use.order, use.at)),
      .label = "starts several reductions, in any order",
      .help = "put the parameters of the layer into one bucket, or reduce when the step is over",
      .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

// Two gradient buckets that become ready in one weight-gradient graph may start in any order.
//
//   [1, -1, -1.5]     the modules whose weight gradients one graph holds are a Python set, sorted
//                     by addresses; after a replay their hooks run in that order, which another
//                     rank need not share, and the collectives of the buckets cross
//
// A set of one has one order, and a module runs its own hooks in the order in which they were
// added: so this concerns a transformer-layer and a moe-layer only, which are several modules.
// Calling a module twice does not put it into the set twice. (A grouped-mlp is several operations:
// see G08.)
constexpr ModuleRule kSetOrder{.shows_at = ShowsAt::WeightGradient,
                               .at_fault = reduces_in_any_order,
                               .describe = describe_set_order};

// Which gradient a backward returns to autograd, in words; empty if none.
std::string_view returned_by(const Module& module) {
  const ModuleFlags& flags = module.flags;
  const bool weight_with_backward = !flags.delay_wgrad && !flags.frozen_weight;
  if (weight_with_backward && !flags.fuse_wgrad_accumulation) return "weight gradient";
  // Grouped-linear's delayed bias goes through a buffer that its backward returned.
  const bool bias_returned = !flags.delay_wgrad || module.kind == ModuleKind::GroupedLinear;
  if (flags.bias && bias_returned) return "bias gradient";
  const bool norms = module.kind && (has_norm(*module.kind) || is_made_of_modules(*module.kind));
  return norms ? "norm's gradients" : "";
}

bool returns_reused_memory(const Context& context, const Module& module) {
  return !returned_by(module).empty() && !module.flags.clone_param_grads &&
         !module.flags.grad_added_to_main_grad && context.microbatches() > 1;
}

ModuleFinding describe_returned_gradient_alias(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format("module `{}` returns its {} in memory of the graphs: `.grad` of {} is "
                             "overwritten when a later backward is replayed",
                             use.module->name, returned_by(*use.module),
                             words::placed(context, *use.order, use.at)),
      .label = "what this returns is kept",
      .help = "leave clone_param_grads on, or take `.grad` into main_grad after each backward",
      .replayed = use.entries({Kind::Backward, Kind::BackwardInput}, 2),
      .second_label = "and this overwrites it"};
}

// A gradient that a replay returns lies in the graphs' own memory, and autograd keeps it.
//
//   [1, 1, -1, -1]     the first B's weight gradient becomes `.grad`; the second B's replay writes
//                      over it before autograd adds the two
//
// clone_param_grads makes a copy of what is returned. It concerns gradients that are really
// returned: a weight's where it is neither fused nor delayed, a bias's where it comes with B, those
// of a norm's parameters always. With grad_added_to_main_grad somebody, as Megatron's DDP does,
// takes `.grad` into main_grad after every backward, so nothing is left to be overwritten.
constexpr ModuleRule kReturnedGradientAlias{.shows_at = ShowsAt::Backward,
                                            .at_fault = returns_reused_memory,
                                            .describe = describe_returned_gradient_alias};

std::string_view consequence(const Module& module) {
  if (!module.kind) return "its gradient is not scattered when it is done";
  if (gradients::is_operation(*module.kind)) return "TransformerEngine refuses to";
  if (module.kind == ModuleKind::GroupedLinear)
    return "its gradient is scattered by the backward, before it exists";
  return "its gradient is never scattered";
}

bool delays_sharded_weight(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && module.flags.sharded_weight;
}

ModuleFinding describe_sharded_weight(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` delays the gradient of a distributed weight to {}: {}", use.module->name,
              words::placed(context, *use.order, use.at), consequence(*use.module)),
          .label = "nothing scatters what this makes",
          .help = "do not delay the weight gradient of a distributed weight"};
}

// The gradient of a distributed weight is scattered when B is over, and a delayed one is not there
// yet.
//
//   [1, -1, -1.5]     grouped-linear scatters at B what W has not made; linear and layernorm-linear
//                     never scatter it; the operations refuse to delay such a weight
constexpr ModuleRule kShardedWeight{.shows_at = ShowsAt::WeightGradient,
                                    .at_fault = delays_sharded_weight,
                                    .describe = describe_sharded_weight};

constexpr Rule kModuleGradientsRules[] = {
    {"G01", "wgrad-lost", "a weight gradient that no replay hands over", Family::Gradients,
     Pass::Modules, judge_modules<kWgradLost>},
    {"G02", "bias-gradient-lost", "a bias gradient that no replay hands over", Family::Gradients,
     Pass::Modules, judge_modules<kBiasGradientLost>},
    {"G03", "gradient-uninitialised", "a gradient of memory that nobody has written",
     Family::Gradients, Pass::Modules, judge_modules<kGradientUninitialised>},
    {"G04", "frozen-weight", "a delayed weight gradient of a frozen weight", Family::Gradients,
     Pass::Modules, judge_modules<kFrozenWeight>},
    {"G05", "double-accumulation", "a gradient that is added to itself", Family::Gradients,
     Pass::Modules, judge_modules<kDoubleAccumulation>},
    {"G06", "shared-weight", "a weight of two layers that is counted twice", Family::Gradients,
     Pass::Modules, shared_weight},
    {"G07", "main-grad-layout", "a main_grad that a grouped product cannot write",
     Family::Gradients, Pass::Modules, judge_modules<kMainGradLayout>},
    {"G08", "hooks-not-run", "reductions on hooks that no replay runs", Family::Gradients,
     Pass::Modules, judge_modules<kHooksNotRun>},
    {"G09", "set-order", "reductions that start in an order of chance", Family::Gradients,
     Pass::Modules, judge_modules<kSetOrder>},
    {"G10", "returned-gradient-alias", "a returned gradient that a later replay overwrites",
     Family::Gradients, Pass::Modules, judge_modules<kReturnedGradientAlias>},
    {"G11", "sharded-weight", "a delayed weight gradient of a distributed weight",
     Family::Gradients, Pass::Modules, judge_modules<kShardedWeight>},
};

}  // namespace

std::span<const Rule> module_gradient_rules() {
  return kModuleGradientsRules;
}

}  // namespace capo::rules
