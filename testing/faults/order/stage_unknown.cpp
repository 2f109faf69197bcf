// One stage fewer is declared than there are; the finding is where the last one first runs.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

#include <algorithm>

namespace capo::testing::faults {

BrokenOrder stage_unknown(const Schedule& sound, std::size_t /*choice*/) {
  if (sound.topology == Topology::Independent) return std::nullopt;
  Schedule schedule = sound;
  std::int32_t last = 0;
  for (const RankOrder& rank : schedule.ranks) {
    for (const std::int32_t stage : rank.stages) last = std::max(last, stage);
  }
  if (last == 0) return std::nullopt;
  schedule.stages = last;
  const auto places = entries_that(schedule, [last](const Entry& entry, const RankOrder& rank) {
    return is_compute(entry.kind) && rank.stages[static_cast<std::size_t>(entry.chunk) - 1] == last;
  });
  return {{schedule, "P03", fault_place(schedule, places.front())}};
}

}  // namespace capo::testing::faults
