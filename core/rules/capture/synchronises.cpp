// A stream that is being captured cannot be waited for.
//
//   [1, -1]     `tensor.cpu()`, `item()`, a synchronisation: "operation not permitted when
//               stream is capturing", and everything after it fails too
//
// Tested by synchronises_test.cpp and tests/corpus/rules/C02/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.synchronises;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` waits for the device, which {} cannot while it is being captured "
              "(cudaErrorStreamCaptureUnsupported)",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture fails",
          .help = "keep the value on the device, or leave the layer out of the graphs"};
}

constexpr ModuleRule kRule{.id = "C02",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Forward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void synchronises(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
