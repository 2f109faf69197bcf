// Every stage lives on some rank.
//
//   4 stages:  0F0,0B0                  stages 1, 2 and 3 are on no rank
//              ...
//
// Tested by stage_nowhere_test.cpp and tests/corpus/rules/P02/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/placement/stage_map.h>

#include <fmt/format.h>

namespace capo::rules {

void stage_nowhere(const Context& context, Diagnostics& out) {
  const auto holders = holders_by_stage(context);
  for (std::size_t stage = 0; stage < holders.size(); ++stage) {
    if (!holders[stage].empty() || !out.wants("P02")) continue;
    out.keep({.rule = "P02",
              .family = Family::Placement,
              .message = fmt::format("stage {} is on no rank, but there are {} stages", stage,
                                     holders.size()),
              .help = {.text = "give its actions to a rank, or number the stages without gaps"}});
  }
}

}  // namespace capo::rules
