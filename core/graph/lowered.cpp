#include "core/graph/lowered.h"

#include "core/base/assert.h"

#include <algorithm>
#include <utility>

namespace capo {

namespace {

StepList steps_as_written(const std::vector<Entry>& order) {
  const auto is_idle = [](const Entry& entry) { return entry.kind == Kind::Idle; };
  if (std::none_of(order.begin(), order.end(), is_idle)) return StepList(std::span(order));
  std::vector<Step> steps;
  steps.reserve(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    const Entry& entry = order[at];
    if (!is_idle(entry)) steps.push_back(to_step(entry.action(), at, entry.group));
  }
  return StepList(std::move(steps));
}

}  // namespace

Lowered as_written(const Schedule& schedule) {
  Lowered lowered;
  for (const RankOrder& rank : schedule.ranks) {
    lowered.ranks.push_back(steps_as_written(rank.order));
  }
  return lowered;
}

bool in_mixed_group(const StepList& steps, std::uint32_t at) {
  if (steps[at].group == Group::Alone) return false;
  std::uint32_t first = at;
  while (steps[first].group == Group::Continues) --first;
  bool sends = false;
  bool receives = false;
  for (std::uint32_t i = first;
       i < steps.size() && (i == first || steps[i].group == Group::Continues); ++i) {
    sends = sends || is_send(steps[i].kind);
    receives = receives || is_receive(steps[i].kind);
  }
  return sends && receives;
}

bool has_transfers(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return is_transfer(entry.kind); });
  });
}

namespace {

// The place is behind all that was made for an entry in front of the reset, and behind the group
// that one of these may be in.
std::uint32_t place_behind(const StepList& steps, std::uint32_t entries) {
  std::size_t behind = steps.size();
  while (behind > 0 && steps[behind - 1].entry >= entries) --behind;
  while (behind < steps.size() && steps[behind].group == Group::Continues) ++behind;
  return static_cast<std::uint32_t>(behind);
}

}  // namespace

Schedule to_schedule(const Lowered& lowered, const Schedule& of) {
  Schedule schedule = of;
  schedule.naming = Naming::Named;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankOrder& rank = schedule.ranks[r];
    const std::vector<Entry> original = std::move(rank.order);
    if (rank.replay) rank.resets.clear();  // they are of the replay
    for (Reset& reset : rank.resets) reset.behind = place_behind(lowered.ranks[r], reset.behind);
    rank.replay.reset();
    rank.order.clear();
    for (const Step& step : lowered.ranks[r]) {
      CAPO_ASSERT(step.entry != kNoEntry, "only a complete lowering is a schedule");
      const Span span = original[step.entry].span();
      rank.order.push_back({.chunk = step.chunk,
                            .microbatch = step.microbatch,
                            .offset = span.offset,
                            .length = static_cast<std::uint16_t>(span.length),
                            .kind = step.kind,
                            .group = step.group});
    }
  }
  return schedule;
}

}  // namespace capo
