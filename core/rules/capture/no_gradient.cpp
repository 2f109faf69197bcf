// A backward that hands nobody a gradient cannot be captured.
//
//   [1, -1]     the input needs none, and the weight's is None, being fused or delayed: the leaf
//               stays bound to the stream of the warm-up, and the engine joins that within the
//               capture
//
// A real gradient of anything draws that stream into the capture, a dummy does too; so a bias or a
// norm in front is enough. Found with PyTorch 2.11. Who returns what is
// core/frameworks/te/contract.h's to say; a module of undeclared kind may have a norm. Tested by
// no_gradient_test.cpp and tests/corpus/rules/C06/.

#include "core/diag/diagnostics.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  const ModuleFlags& flags = module.flags;
  if (!module.kind || flags.input_requires_grad || flags.frozen_weight) return false;
  if (!gradients::contract_under(*module.kind, flags, gradients::Whose::Te)) return false;
  return !gradients::hands_a_gradient(*module.kind, flags, gradients::Whose::Te);
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` hands nobody a gradient: its input needs none and its weight's is not "
              "returned, so that the capture of {} fails (cudaErrorStreamCaptureIsolation)",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture fails",
          .help =
              "give the parameter grad_added_to_main_grad and fuse_wgrad_accumulation, so that "
              "backward returns a dummy"};
}

constexpr ModuleRule kRule{.id = "C06",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Backward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void no_gradient(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
