// A stage has a number below the number of stages.
//
//   1 stage:  0F0,0B0,1F0,1B0           PyTorch fails with a bare KeyError: 1
//
// Tested by stage_unknown_test.cpp and tests/corpus/rules/P03/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/placement/stage_map.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

void stage_unknown(const Context& context, Diagnostics& out) {
  if (!context.schedule().stages) return;
  const std::int32_t stages = *context.schedule().stages;
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;
    for (std::size_t c = 0; c < order.holder->stages.size(); ++c) {
      const std::int32_t stage = order.holder->stages[c];
      if (stage < stages || !out.wants("P03")) continue;
      Diagnostic finding{
          .rule = "P03",
          .family = Family::Placement,
          .message = fmt::format("rank {} runs stage {}, but the model has {} ({})", order.rank,
                                 stage, words::count(stages, "stage"), words::range(stages)),
          .help = {.text = "correct the stage, or the number that is declared"}};
      const auto at = std::find_if(
          order.entries.begin(), order.entries.end(),
          [&](const Entry& entry) { return entry.chunk == static_cast<std::int32_t>(c) + 1; });
      if (at != order.entries.end()) {
        finding.labels = {{at->span(), ""}};
        finding.witness =
            words::entries(context, order, {static_cast<std::size_t>(at - order.entries.begin())});
      }
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
