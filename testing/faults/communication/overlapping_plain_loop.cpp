// Calls overlap, though a rank's warm-up is that of Megatron's loop without model chunks, which
// waits for each.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication overlapping_plain_loop(const Communication& sound, std::size_t /*choice*/) {
  const Schedule& schedule = sound.schedule;
  if (sound.environment.p2p != MegatronCalls::Batch || sound.environment.ep_overlap) {
    return std::nullopt;
  }
  // The rank before the last: one forward of warm-up, where that is not all there is.
  const RankOrder& rank = schedule.ranks[schedule.ranks.size() - 2];
  if (rank.chunks > 1 || schedule.microbatches.value_or(0) < 3) return std::nullopt;
  if (rank.order[2].kind != Kind::Backward) return std::nullopt;
  Communication broken = sound;
  broken.environment.p2p = MegatronCalls::Overlap;
  return {{broken, "R01", std::nullopt}};
}

}  // namespace capo::testing::faults
