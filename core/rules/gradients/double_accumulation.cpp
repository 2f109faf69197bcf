// ops.BasicLinear hands out main_grad itself as the gradient to be added to main_grad.
//
//   [1, -1]     with accumulate_into_main_grad and overwrite_main_grad, B writes main_grad,
//               returns a view of it to autograd and leaves grad_added_to_main_grad unset:
//               whoever adds `.grad` to main_grad, as Megatron's DDP does, doubles the gradient
//
// The operation keeps one flag for "write to main_grad" and "add to it". Modules and
// ops.GroupedLinear keep two. Tested by double_accumulation_test.cpp and tests/corpus/rules/G05/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.kind == ModuleKind::BasicLinearOp && module.flags.fuse_wgrad_accumulation &&
         module.flags.overwrite_main_grad && !module.flags.frozen_weight;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` doubles its weight gradient: {} writes it to main_grad and returns a live "
          "view of main_grad, with grad_added_to_main_grad unset, as a gradient still to be "
          "added",
          use.module->name, words::placed(context, *use.order, use.at)),
      .label = "returns what main_grad already holds",
      .help = "clear main_grad before the step and leave overwrite_main_grad out"};
}

constexpr ModuleRule kRule{.id = "G05",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::Backward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void double_accumulation(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
