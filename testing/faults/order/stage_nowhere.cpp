// The chunk on the last stage is placed one further, so that its own stage is nowhere. What is
// nowhere has no entry to point at.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder stage_nowhere(const Schedule& sound, std::size_t /*choice*/) {
  if (sound.topology == Topology::Independent) return std::nullopt;
  Schedule schedule = sound;
  schedule.topology = Topology::Custom;
  std::int32_t* last = nullptr;
  for (RankOrder& rank : schedule.ranks) {
    for (std::int32_t& stage : rank.stages) {
      if (last == nullptr || stage > *last) last = &stage;
    }
  }
  ++*last;
  return {{schedule, "P02", std::nullopt}};
}

}  // namespace capo::testing::faults
