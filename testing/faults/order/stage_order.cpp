// A forward comes before that of the stage before, or a backward before that of the stage behind,
// on the rank that holds both.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include "core/graph/stage_map.h"

#include <algorithm>

namespace capo::testing::faults {

namespace {

bool is_forward(const Entry& entry) {
  return entry.kind == Kind::Forward;
}

bool is_backward(const Entry& entry) {
  return entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
}

// One of the entries that are so comes before what it reads, which the stage makes that `source`
// says.
BrokenOrder ahead_of_its_source(const Schedule& sound, std::size_t choice,
                                bool (*is_so)(const Entry&),
                                std::int32_t (StageMap::*source)(std::int32_t) const) {
  const StageMap map(sound);
  const auto source_of = [&](std::size_t rank, const Entry& entry) {
    return (map.*source)(map.stage_of(static_cast<std::int32_t>(rank), entry.chunk));
  };
  std::vector<EntryPlace> readers;
  for (const EntryPlace& place : compute_entries(sound)) {
    const Entry& entry = sound.ranks[place.rank].order[place.at];
    const std::int32_t stage = map.stage_of(static_cast<std::int32_t>(place.rank), entry.chunk);
    const std::int32_t from = source_of(place.rank, entry);
    if (is_so(entry) && from != kNoStage && map.same_rank(stage, from)) readers.push_back(place);
  }
  const auto reader = chosen(readers, choice);
  if (!reader) return std::nullopt;
  Schedule schedule = sound;
  const Entry moved = take_out(schedule, *reader);
  const std::int32_t chunk = map.home(source_of(reader->rank, moved)).chunk;
  const std::vector<Entry>& order = schedule.ranks[reader->rank].order;
  const auto made = std::find_if(order.begin(), order.end(), [&](const Entry& entry) {
    return is_so(entry) && entry.chunk == chunk && entry.microbatch == moved.microbatch;
  });
  const auto at = static_cast<std::size_t>(made - order.begin());
  const EntryPlace place = put_before(schedule, {.rank = reader->rank, .at = at}, moved);
  return {{schedule, "D03", fault_place(schedule, place)}};
}

}  // namespace

BrokenOrder stage_order(const Schedule& sound, std::size_t choice) {
  return ahead_of_its_source(sound, choice, is_forward, &StageMap::before);
}

BrokenOrder backward_order(const Schedule& sound, std::size_t choice) {
  return ahead_of_its_source(sound, choice, is_backward, &StageMap::after);
}

}  // namespace capo::testing::faults
