// A graph reads where its tensors were when it was captured.
//
//   [1, -1]     offloaded after F and loaded again before B, the tensors lie somewhere else; the
//               replay of B reads the old place, which may be another's by now, or be unmapped
//
// Tested by offloaded_address_test.cpp and tests/corpus/rules/C07/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.offloaded;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  const std::vector<std::size_t> forwards = use.entries({Kind::Forward}, 1);
  std::vector<std::size_t> replayed{use.at};
  replayed.insert(replayed.end(), forwards.begin(), forwards.end());
  return {.message = fmt::format(
              "module `{}` has tensors that leave the device between forward and backward: replays "
              "of {} read the addresses that they had at capture",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "reads where they were",
          .help = "keep them on the device, or leave the layer out of the graphs",
          .replayed = std::move(replayed),
          .second_label = "made here, then moved away"};
}

constexpr ModuleRule kRule{.id = "C07",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Backward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void offloaded_address(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
