// Sizes of groups that are numbers on the CPU are constants of a graph.
//
//   [1, -1]     the capture cuts the tokens into groups as it finds them; replays with other tokens
//               cut them at the same places, without an error
//
// Where the sizes come from a tensor on the device, asking for them waits for the device, which
// cannot be captured: that is C02. A grouped product in fp32 has no path but this one, in
// TransformerEngine and in capo's own modules alike: so this is an error under either plan. Tested
// by host_splits_test.cpp and tests/corpus/rules/C01/.

#include "core/diag/diagnostics.h"
#include "core/model/module_kinds.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  const bool in_fp32 = module.kind && is_grouped(*module.kind) && module.dtype == DataType::Fp32;
  return module.splits == Splits::Host || in_fp32;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  const bool by_choice = use.module->splits == Splits::Host;
  return {
      .message = fmt::format(
          "module `{}` takes the sizes of its groups from the CPU{}: the capture of {} bakes them "
          "in, and replays ignore new ones",
          use.module->name, by_choice ? "" : ", as grouped products in fp32 do",
          words::placed(context, *use.order, use.at)),
      .label = "groups have the sizes of the capture for ever",
      .help = by_choice ? "keep the splits on the device, or leave the layer out of the graphs"
                        : "compute in bf16 or fp16, or leave the layer out of the graphs"};
}

constexpr ModuleRule kRule{.id = "C01",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::Forward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void host_splits(const Context& context, Diagnostics& out) {
  const Severity severity = captured_by_te(context).value_or(Severity::Error);
  const auto faulty = [&](const Module& module) { return at_fault(context, module); };
  for (const ModuleUse& use : modules_at_fault(context, kRule.shows_at, faulty)) {
    if (out.wants(kRule.id, severity)) out.keep(module_diagnostic(context, kRule, use, severity));
  }
}

}  // namespace capo::rules
