// A stage lives on one rank.
//
//   0F0,1F0,0B0             rank 0 runs stage 1,
//   1F0,1B0                 and so does rank 1: the parameters are there only once
//
// Where the placement is declared, the rank that runs a stage of another is the one reported; else
// the one that runs less of it. Tested by stage_twice_test.cpp and tests/corpus/rules/P01/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/placement/stage_map.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

namespace {

const OrderView& capture_order_of(const Context& context, const Holder& holder) {
  return *std::find_if(context.orders().begin(), context.orders().end(),
                       [&](const OrderView& order) { return order.rank == holder.rank; });
}

// The holder that the stage belongs to: the declared one, else the one that runs it most.
const Holder& home_of(const Context& context, const std::vector<Holder>& holders) {
  const auto claim = [&](const Holder& holder) {
    const OrderView& order = capture_order_of(context, holder);
    const ChunkTally& tally = order.of(holder.chunk);
    const bool declared = holder.chunk <= order.holder->chunks - order.holder->strays;
    return std::pair(declared, tally.forwards + tally.backwards + tally.inputs + tally.weights);
  };
  return *std::max_element(holders.begin(), holders.end(),
                           [&](const Holder& a, const Holder& b) { return claim(a) < claim(b); });
}

}  // namespace

void stage_twice(const Context& context, Diagnostics& out) {
  for (const auto& [stage, holders] : holders_by_stage(context)) {
    if (holders.size() < 2) continue;
    const Holder& home = home_of(context, holders);
    for (const Holder& holder : holders) {
      if (&holder == &home || !out.wants("P01")) continue;
      Diagnostic finding{.rule = "P01", .family = Family::Placement};
      if (holder.rank == home.rank) {
        finding.message = fmt::format("stage {} is both chunk {} and chunk {} of rank {}", stage,
                                      home.chunk, holder.chunk, home.rank);
        finding.help.text = "give each chunk a stage of its own";
      } else {
        finding.message =
            fmt::format("stage {} is on rank {} and on rank {}", stage, home.rank, holder.rank);
        finding.help.text = fmt::format("move its actions to rank {}", home.rank);
      }
      const OrderView& order = capture_order_of(context, holder);
      const auto at = std::find_if(order.entries.begin(), order.entries.end(),
                                   [&](const Entry& entry) { return entry.chunk == holder.chunk; });
      if (at != order.entries.end()) {
        const auto position = static_cast<std::size_t>(at - order.entries.begin());
        finding.labels = {
            {at->span(), holder.rank == home.rank
                             ? fmt::format("chunk {} is stage {} as well", holder.chunk, stage)
                             : fmt::format("run by rank {} here", holder.rank)}};
        finding.witness = words::entries(context, order, {position});
      }
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
