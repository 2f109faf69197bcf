// Two chunks are placed on one stage, so that its parameters would be there twice. Which of the two
// is at home there is whichever runs more of it, else the one on the lower rank; the finding is
// where the other one first runs.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

#include <algorithm>

namespace capo::testing::faults {

namespace {

struct ChunkPlace {
  std::size_t rank;
  std::int32_t chunk;
};

std::ptrdiff_t runs(const Schedule& schedule, ChunkPlace place) {
  const auto& order = schedule.ranks[place.rank].order;
  return std::count_if(order.begin(), order.end(), [&](const Entry& entry) {
    return is_compute(entry.kind) && entry.chunk == place.chunk;
  });
}

}  // namespace

BrokenOrder stage_twice(const Schedule& sound, std::size_t choice) {
  if (sound.topology == Topology::Independent) return std::nullopt;
  Schedule schedule = sound;
  schedule.topology = Topology::Custom;
  std::vector<ChunkPlace> chunks;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    for (std::int32_t c = 1; c <= schedule.ranks[r].chunks; ++c)
      chunks.push_back({.rank = r, .chunk = c});
  }
  if (chunks.size() < 2) return std::nullopt;
  const auto stage_of = [&](ChunkPlace place) -> std::int32_t& {
    return schedule.ranks[place.rank].stages[static_cast<std::size_t>(place.chunk) - 1];
  };
  const std::size_t i = choice % (chunks.size() - 1);
  const std::size_t j = i + 1 + choice / 7 % (chunks.size() - 1 - i);
  stage_of(chunks[j]) = stage_of(chunks[i]);
  const ChunkPlace guest =
      runs(schedule, chunks[j]) > runs(schedule, chunks[i]) ? chunks[i] : chunks[j];
  const auto& order = schedule.ranks[guest.rank].order;
  const auto at = std::find_if(order.begin(), order.end(),
                               [&](const Entry& entry) { return entry.chunk == guest.chunk; });
  return {{schedule, "P01",
           fault_place(schedule,
                       {.rank = guest.rank, .at = static_cast<std::size_t>(at - order.begin())})}};
}

}  // namespace capo::testing::faults
