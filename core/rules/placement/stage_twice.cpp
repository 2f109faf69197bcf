// A stage lives on one rank.
//
//   0F0,1F0,0B0             rank 0 runs stage 1,
//   1F0,1B0                 and so does rank 1: the parameters are there only once
//
// Where the placement is declared, the rank that runs a stage of another is the one reported; else the
// higher one. Tested by stage_twice_test.cpp and tests/corpus/rules/P01/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/placement/stage_map.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

void stage_twice(const Context& context, Diagnostics& out) {
  const auto holders = holders_by_stage(context);
  for (std::size_t stage = 0; stage < holders.size(); ++stage) {
    if (holders[stage].size() < 2) continue;
    // A stage that strayed into a row of a table was given a chunk behind the declared ones, and
    // runs less there than at home.
    const auto runs = [&](const Holder& holder) {
      for (const OrderView& order : context.orders()) {
        if (order.rank != holder.rank || order.replay) continue;
        const ChunkTally& tally = order.of(holder.chunk);
        return tally.forwards + tally.backwards + tally.inputs + tally.weights;
      }
      return 0;
    };
    const Holder home = *std::max_element(holders[stage].begin(), holders[stage].end(),
                                          [&](const Holder& a, const Holder& b) { return runs(a) < runs(b); });
    for (const Holder& holder : holders[stage]) {
      if ((holder.rank == home.rank && holder.chunk == home.chunk) || !out.wants("P01")) continue;
      Diagnostic finding{.rule = "P01",
                         .family = Family::Placement,
                         .message = fmt::format("stage {} is on rank {} and on rank {}", stage, home.rank,
                                                holder.rank),
                         .help = {.text = fmt::format("move its actions to rank {}", home.rank)}};
      for (const OrderView& order : context.orders()) {
        if (order.rank != holder.rank || order.replay) continue;
        const auto at = std::find_if(order.entries.begin(), order.entries.end(),
                                     [&](const Entry& entry) { return entry.chunk == holder.chunk; });
        if (at == order.entries.end()) continue;
        const auto position = static_cast<std::size_t>(at - order.entries.begin());
        finding.labels = {{at->span(), fmt::format("run by rank {} here", holder.rank)}};
        finding.witness = words::entries(context, order, {position});
      }
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
