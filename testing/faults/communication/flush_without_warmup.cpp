// Overlapped calls get the flush where the last rank has no warm-up: it waits before its first
// forward for a receive that nobody posted.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication flush_without_warmup(const Communication& sound, std::size_t /*choice*/) {
  const RankOrder& last = sound.schedule.ranks.back();
  if (sound.environment.p2p != MegatronCalls::Overlap || last.chunks > 1 ||
      sound.environment.ep_overlap)
    return std::nullopt;
  Communication broken = sound;
  broken.environment.p2p = MegatronCalls::Flush;
  const auto rank = static_cast<std::int32_t>(sound.schedule.ranks.size()) - 1;
  return {{broken, "R02", FaultPlace{.rank = rank, .index = 0}}};
}

}  // namespace capo::testing::faults
