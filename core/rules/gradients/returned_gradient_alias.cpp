// A gradient that a replay returns lies in the graphs' own memory, and autograd keeps it.
//
//   [1, 1, -1, -1]     the first B's weight gradient becomes `.grad`; the second B's replay writes
//                      over it before autograd adds the two
//
// clone_param_grads makes a copy of what is returned. It concerns gradients that are really
// returned: a weight's where it is neither fused nor delayed, a bias's where it comes with B, those
// of a norm's parameters always. With grad_added_to_main_grad somebody, as Megatron's DDP does,
// takes `.grad` into main_grad after every backward, so nothing is left to be overwritten.
// Tested by returned_gradient_alias_test.cpp and tests/corpus/rules/G10/.

#include "core/diag/diagnostics.h"
#include "core/model/module_kinds.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <string_view>

namespace capo::rules {

namespace {

// Which gradient a backward returns to autograd, in words; empty if none.
std::string_view returned_by(const Module& module) {
  const ModuleFlags& flags = module.flags;
  const bool weight_with_backward = !flags.delay_wgrad && !flags.frozen_weight;
  if (weight_with_backward && !flags.fuse_wgrad_accumulation) return "weight gradient";
  // Grouped-linear's delayed bias goes through a buffer that its backward returned.
  const bool bias_returned = !flags.delay_wgrad || module.kind == ModuleKind::GroupedLinear;
  if (flags.bias && bias_returned) return "bias gradient";
  const bool norms =
      module.kind && (has_norm(*module.kind) || module.kind == ModuleKind::TransformerLayer);
  return norms ? "norm's gradients" : "";
}

bool at_fault(const Context& context, const Module& module) {
  return !returned_by(module).empty() && !module.flags.clone_param_grads &&
         !module.flags.grad_added_to_main_grad && context.microbatches() > 1;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
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

constexpr ModuleRule kRule{.id = "G10",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::Backward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void returned_gradient_alias(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
