// A forward comes before one of the same rank that it needs by way of another rank; the finding is
// a cycle that goes through it.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include "core/graph/stage_map.h"

namespace capo::testing::faults {

BrokenOrder dependency_cycle(const Schedule& sound, std::size_t choice) {
  const StageMap map(sound);
  // The stage before the previous one, if the rank holds it and not the one between.
  const auto around = [&](std::int32_t stage) {
    const std::int32_t between = map.before(stage);
    const std::int32_t first = between == kNoStage ? kNoStage : map.before(between);
    const bool returns =
        first != kNoStage && map.same_rank(first, stage) && !map.same_rank(between, stage);
    return returns ? first : kNoStage;
  };
  const auto stage_of = [&](EntryPlace place, const Entry& entry) {
    return map.stage_of(static_cast<std::int32_t>(place.rank), entry.chunk);
  };
  std::vector<EntryPlace> found;
  for (const EntryPlace& place : compute_entries(sound)) {
    const Entry& entry = sound.ranks[place.rank].order[place.at];
    if (entry.kind == Kind::Forward && around(stage_of(place, entry)) != kNoStage)
      found.push_back(place);
  }
  const auto last = chosen(found, choice);
  if (!last) return std::nullopt;
  Schedule schedule = sound;
  const Entry moved = take_out(schedule, *last);
  const Action needed{.kind = Kind::Forward,
                      .chunk = map.home(around(stage_of(*last, moved))).chunk,
                      .microbatch = moved.microbatch};
  const EntryPlace place = put_before(
      schedule, {.rank = last->rank, .at = find(schedule.ranks[last->rank], needed).value()},
      moved);
  return {{schedule, "D04", fault_place(schedule, place)}};
}

}  // namespace capo::testing::faults
