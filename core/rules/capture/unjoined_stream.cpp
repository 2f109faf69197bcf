// Work that goes to another stream must come back before the capture ends.
//
//   [1, -1]     the capture follows an event to the other stream; where no event leads back, ending
//               it fails
//
// Tested by unjoined_stream_test.cpp and tests/corpus/rules/C03/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.unjoined_stream;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` starts work on another stream that nothing waits for: the capture of {} "
              "cannot end (cudaErrorStreamCaptureUnjoined)",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture does not end",
          .help = "record an event behind that work, and let the captured stream wait for it"};
}

constexpr ModuleRule kRule{.id = "C03",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Forward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void unjoined_stream(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
