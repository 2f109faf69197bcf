// A backward comes before that of the stage behind, on the rank that holds both.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/transfers.h>

#include <capo/core/graph/stage_map.h>

namespace capo::testing::faults {

namespace {

bool is_backward(const Entry& entry) {
  return entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
}

}  // namespace

BrokenOrder backward_order(const Schedule& sound, std::size_t choice) {
  const StageMap map(sound);
  std::vector<EntryPlace> readers;
  for (const EntryPlace& place : compute_entries(sound)) {
    const Entry& entry = sound.ranks[place.rank].order[place.at];
    const std::int32_t stage = map.stage_of(static_cast<std::int32_t>(place.rank), entry.chunk);
    const std::int32_t behind = map.after(stage);
    if (is_backward(entry) && behind != kNoStage && map.same_rank(stage, behind))
      readers.push_back(place);
  }
  const auto reader = chosen(readers, choice);
  if (!reader) return std::nullopt;
  Schedule schedule = sound;
  const Entry moved = take_out(schedule, *reader);
  const std::int32_t stage = map.stage_of(static_cast<std::int32_t>(reader->rank), moved.chunk);
  const std::int32_t chunk = map.home(map.after(stage)).chunk;
  const RankOrder& rank = schedule.ranks[reader->rank];
  std::size_t made = 0;
  while (!is_backward(rank.order[made]) || rank.order[made].chunk != chunk ||
         rank.order[made].microbatch != moved.microbatch)
    ++made;
  const EntryPlace place = put_before(schedule, {.rank = reader->rank, .at = made}, moved);
  return {{schedule, "D03", fault_place(schedule, place)}};
}

}  // namespace capo::testing::faults
