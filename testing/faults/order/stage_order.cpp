// A forward comes before that of the stage before, on the rank that holds both.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/transfers.h>

#include <capo/core/graph/stage_map.h>

namespace capo::testing::faults {

BrokenOrder stage_order(const Schedule& sound, std::size_t choice) {
  const StageMap map(sound);
  std::vector<EntryPlace> readers;
  for (const EntryPlace& place : compute_entries(sound)) {
    const Entry& entry = sound.ranks[place.rank].order[place.at];
    const std::int32_t stage = map.stage_of(static_cast<std::int32_t>(place.rank), entry.chunk);
    const std::int32_t before = map.before(stage);
    if (entry.kind == Kind::Forward && before != kNoStage && map.same_rank(stage, before))
      readers.push_back(place);
  }
  const auto reader = chosen(readers, choice);
  if (!reader) return std::nullopt;
  Schedule schedule = sound;
  const Entry moved = take_out(schedule, *reader);
  const std::int32_t stage = map.stage_of(static_cast<std::int32_t>(reader->rank), moved.chunk);
  const Action made{.kind = Kind::Forward,
                    .chunk = map.home(map.before(stage)).chunk,
                    .microbatch = moved.microbatch};
  const EntryPlace place = put_before(
      schedule, {.rank = reader->rank, .at = find(schedule.ranks[reader->rank], made).value()},
      moved);
  return {{schedule, "D03", fault_place(schedule, place)}};
}

}  // namespace capo::testing::faults
