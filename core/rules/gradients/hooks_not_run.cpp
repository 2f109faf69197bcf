// Reductions that hang on the weight-gradient hooks of an operation never start under CUDA graphs.
//
//   [1, -1, -1.5]     the replay of W runs the graph, then the hooks of its modules; operations,
//                     which have the same list of hooks, are left out
//
// skip_backward_post_hook took the reduction off autograd's hook, so nothing is left that would
// start it: the parameter is never reduced. Tested by hooks_not_run_test.cpp and
// tests/corpus/rules/G08/.

#include "core/diag/diagnostics.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.delay_wgrad && module.flags.wgrad_hooks && module.kind &&
         gradients::is_operation(*module.kind);
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
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

constexpr ModuleRule kRule{.id = "G08",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void hooks_not_run(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
