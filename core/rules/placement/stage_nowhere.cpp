// Every stage lives on some rank.
//
//   4 stages:  0F0,0B0                  stages 1, 2 and 3 are on no rank
//              ...
//
// Tested by stage_nowhere_test.cpp and tests/corpus/rules/P02/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/placement/stage_map.h"

#include <fmt/format.h>

namespace capo::rules {

void stage_nowhere(const Context& context, Diagnostics& out) {
  const auto holders = holders_by_stage(context);
  const std::int32_t last = holders.empty() ? 0 : holders.rbegin()->first + 1;
  const std::int32_t stages = context.schedule().stages.value_or(last);
  if (context.schedule().topology == Topology::Independent) return;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    if (holders.contains(stage)) continue;
    if (out.full("P02")) {
      const auto next = holders.upper_bound(stage);
      const std::int32_t end = next == holders.end() ? stages : next->first;
      out.count_unseen("P02", static_cast<std::size_t>(end - stage));
      stage = end - 1;
      continue;
    }
    out.add(
        {.rule = "P02",
         .family = Family::Placement,
         .message = fmt::format("stage {} is on no rank, but there are {} stages", stage, stages),
         .help = {.text = "give its actions to a rank, or number the stages without gaps"}});
  }
}

}  // namespace capo::rules
