// Sizes of groups that are numbers on the CPU are constants of a graph.
//
//   [1, -1]     the capture cuts the tokens into groups as it finds them; replays with other tokens
//               cut them at the same places, without an error
//
// Where the sizes come from a tensor on the device, asking for them waits for the device, which
// cannot be captured: that is C02. Tested by host_splits_test.cpp and tests/corpus/rules/C01/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/captured_by_te.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.splits == Splits::Host;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` takes the sizes of its groups from the CPU: the capture of {} bakes them "
          "in, and replays ignore new ones",
          use.module->name, words::placed(context, *use.order, use.at)),
      .label = "groups have the sizes of the capture for ever",
      .help = "keep the splits on the device, or leave the layer out of the graphs"};
}

constexpr ModuleRule kRule{.id = "C01",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Forward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void host_splits(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
