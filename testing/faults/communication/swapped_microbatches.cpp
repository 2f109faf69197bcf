// Two microbatches change their numbers on every rank: all of them agree, but none runs its
// microbatches in ascending order, as Megatron's loops do.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication swapped_microbatches(const Communication& sound, std::size_t /*choice*/) {
  if (!sound.environment.p2p || sound.schedule.microbatches.value_or(0) < 2) return std::nullopt;
  Communication broken = sound;
  broken.schedule.naming = Naming::Named;
  for (RankOrder& rank : broken.schedule.ranks) {
    for (Entry& entry : rank.order) {
      if (entry.microbatch == 0 || entry.microbatch == 1) entry.microbatch = 1 - entry.microbatch;
    }
  }
  return {{broken, "R01", FaultPlace{.rank = 0, .index = 0}}};
}

}  // namespace capo::testing::faults
