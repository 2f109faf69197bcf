// Exchanges overlap, for which the warm-up is a forward too short: the last rank would run the
// first backward beside the forward whose activations it reads.

#include "testing/faults/faults.h"

#include <algorithm>

namespace capo::testing::faults {

BrokenCommunication beside_own_forward(const Communication& sound, std::size_t /*choice*/) {
  const RankOrder& last = sound.schedule.ranks.back();
  if (!sound.environment.p2p || sound.environment.ep_overlap || last.chunks == 1) {
    return std::nullopt;
  }
  Communication broken = sound;
  broken.environment.ep_overlap = true;
  const auto first = std::find_if(last.order.begin(), last.order.end(),
                                  [](const Entry& entry) { return entry.kind == Kind::Backward; });
  const FaultPlace place{.rank = static_cast<std::int32_t>(sound.schedule.ranks.size()) - 1,
                         .index = static_cast<std::size_t>(first - last.order.begin())};
  return {{broken, "R01", place}};
}

}  // namespace capo::testing::faults
