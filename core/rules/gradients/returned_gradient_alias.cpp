// A gradient that a replay returns lies in the graphs' own memory, and autograd keeps it.
//
//   [1, 1, -1, -1]     the first B's weight gradient becomes `.grad`; the second B's replay writes
//                      over it before autograd adds the two
//
// clone_param_grads makes a copy of what is returned. It concerns weight gradients that are really
// returned: neither fused nor delayed. With grad_added_to_main_grad somebody, as Megatron's DDP
// does, takes `.grad` into main_grad after every backward, so nothing is left to be overwritten.
// Tested by returned_gradient_alias_test.cpp and tests/corpus/rules/G10/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/captured_by_te.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& context, const Module& module) {
  const ModuleFlags& flags = module.flags;
  const bool returned =
      !flags.delay_wgrad && !flags.fuse_wgrad_accumulation && !flags.frozen_weight;
  return returned && !flags.clone_param_grads && !flags.grad_added_to_main_grad &&
         context.microbatches() > 1;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` returns its weight gradient in memory of the graphs: `.grad` of {} is "
              "overwritten when a later backward is replayed",
              use.module->name, words::placed(context, *use.order, use.at)),
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
