// The rules about which rank holds which stage, under a topology that says so.
//
//   0F0,1F0,0B0             rank 0 runs stage 1,
//   1F0,1B0                 and so does rank 1: P01
//
// Tested by placement_test.cpp and tests/corpus/rules/P01 to P03.

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace capo::rules {

namespace {

struct Holder {
  std::int32_t stage;
  std::int32_t rank;
  std::int32_t chunk;

  friend auto operator<=>(const Holder&, const Holder&) = default;
};

// The holders of all stages, by stage and then by rank; empty if chunks are not wired to stages. A
// stage that the model does not have is left out: it is stage_unknown's.
std::vector<Holder> holders_by_stage(const Context& context) {
  const Schedule& schedule = context.schedule();
  std::vector<Holder> holders;
  if (schedule.topology == Topology::Independent) return holders;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& stages = schedule.ranks[r].stages;
    for (std::size_t c = 0; c < stages.size(); ++c) {
      if (schedule.stages && stages[c] >= *schedule.stages) continue;
      holders.push_back({.stage = stages[c],
                         .rank = static_cast<std::int32_t>(r),
                         .chunk = static_cast<std::int32_t>(c) + 1});
    }
  }
  std::sort(holders.begin(), holders.end());
  return holders;
}

// The holders of the stage of the first, which are followed by those of higher stages.
std::span<const Holder> of_one_stage(std::span<const Holder> holders) {
  const auto next = std::find_if(holders.begin(), holders.end(), [&](const Holder& holder) {
    return holder.stage != holders.front().stage;
  });
  return {holders.begin(), next};
}

const OrderView& capture_order_of(const Context& context, const Holder& holder) {
  return *std::find_if(context.orders().begin(), context.orders().end(),
                       [&](const OrderView& order) { return order.rank == holder.rank; });
}

// The holder that the stage belongs to: the declared one, or the one that runs it most.
const Holder& home_of(const Context& context, std::span<const Holder> holders) {
  const auto claim = [&](const Holder& holder) {
    const OrderView& order = capture_order_of(context, holder);
    const ChunkTally& tally = order.of(holder.chunk);
    const bool declared = holder.chunk <= order.holder->chunks - order.holder->strays;
    return std::pair(declared, tally.forwards + tally.backwards + tally.inputs + tally.weights);
  };
  return *std::max_element(holders.begin(), holders.end(),
                           [&](const Holder& a, const Holder& b) { return claim(a) < claim(b); });
}

// A stage lives on one rank.
//
//   0F0,1F0,0B0             rank 0 runs stage 1,
//   1F0,1B0                 and so does rank 1: the parameters are there only once
//
// If the placement is declared, the rank that runs a stage of another is reported; otherwise the
// one that runs less of it.
void stage_twice(const Context& context, Findings& out) {
  const std::vector<Holder> all = holders_by_stage(context);
  std::span<const Holder> left = all;
  while (!left.empty()) {
    const std::span<const Holder> holders = of_one_stage(left);
    left = left.subspan(holders.size());
    if (holders.size() < 2) continue;
    const std::int32_t stage = holders.front().stage;
    const Holder& home = home_of(context, holders);
    for (const Holder& holder : holders) {
      if (&holder == &home || !out.found()) continue;
      Diagnostic finding;
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
        const auto position = as_index(at - order.entries.begin());
        finding.labels = {
            {at->span(), holder.rank == home.rank
                             ? fmt::format("chunk {} is stage {} as well", holder.chunk, stage)
                             : fmt::format("run by rank {} here", holder.rank)}};
        finding.witness = words::entries(context, order, {position});
      }
      out.report(std::move(finding));
    }
  }
}

// Every stage lives on some rank.
//
//   4 stages:  0F0,0B0                  stages 1, 2 and 3 are on no rank
//              ...
void stage_nowhere(const Context& context, Findings& out) {
  if (context.schedule().topology == Topology::Independent) return;
  const std::vector<Holder> holders = holders_by_stage(context);
  const std::int32_t last = holders.empty() ? 0 : holders.back().stage + 1;
  const std::int32_t stages = context.schedule().stages.value_or(last);
  auto next = holders.begin();  // of this stage or a higher one
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    while (next != holders.end() && next->stage < stage) ++next;
    if (next != holders.end() && next->stage == stage) continue;
    if (out.full()) {
      const std::int32_t end = next == holders.end() ? stages : next->stage;
      out.count_unseen(as_index(end - stage));
      stage = end - 1;
      continue;
    }
    out.add(
        {.message = fmt::format("stage {} is on no rank, but there are {} stages", stage, stages),
         .help = {.text = "give its actions to a rank, or number the stages without gaps"}});
  }
}

// A stage has a number below the number of stages.
//
//   1 stage:  0F0,0B0,1F0,1B0           PyTorch fails with a bare KeyError: 1
void stage_unknown(const Context& context, Findings& out) {
  if (!context.schedule().stages) return;
  const std::int32_t stages = *context.schedule().stages;
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;
    for (std::size_t c = 0; c < order.holder->stages.size(); ++c) {
      const std::int32_t stage = order.holder->stages[c];
      if (stage < stages || !out.found()) continue;
      Diagnostic finding{
          .message = fmt::format("rank {} runs stage {}, but the model has {} ({})", order.rank,
                                 stage, counted(stages, "stage"), numbered(stages)),
          .help = {.text = "correct the stage, or the number that is declared"}};
      const auto at = std::find_if(
          order.entries.begin(), order.entries.end(),
          [&](const Entry& entry) { return entry.chunk == static_cast<std::int32_t>(c) + 1; });
      if (at != order.entries.end()) {
        finding.labels = {{at->span(), ""}};
        finding.witness = words::entries(context, order, {as_index(at - order.entries.begin())});
      }
      out.report(std::move(finding));
    }
  }
}

constexpr Rule kPlacementRules[] = {
    {.id = "P01",
     .name = "stage-twice",
     .title = "a stage on two ranks",
     .family = Family::Placement,
     .pass = Pass::Placement,
     .check = stage_twice,
     .leaves_executable = true},
    {"P02", "stage-nowhere", "a stage on no rank", Family::Placement, Pass::Placement,
     stage_nowhere},
    {"P03", "stage-unknown", "a stage that the model does not have", Family::Placement,
     Pass::Placement, stage_unknown},
};

}  // namespace

std::span<const Rule> placement_rules() {
  return kPlacementRules;
}

}  // namespace capo::rules
