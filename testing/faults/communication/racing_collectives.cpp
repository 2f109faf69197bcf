// The first two ranks reshard and unshard their first chunk at the end of their orders, on two
// streams between which there is no event.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication racing_collectives(const Communication& sound, std::size_t /*choice*/) {
  if (sound.environment.p2p) return std::nullopt;  // Megatron's orders hold none
  Communication broken = sound;
  broken.groups.push_back({.name = "shards",
                           .members = {0, 1},
                           .actions = {Kind::Unshard, Kind::Reshard},
                           .streams = {{Kind::Unshard, "other"}}});
  for (const std::size_t rank : {0, 1}) {
    for (const Kind kind : {Kind::Reshard, Kind::Unshard})
      broken.schedule.ranks[rank].order.push_back({.chunk = 1, .kind = kind});
  }
  const std::size_t reshard = broken.schedule.ranks[0].order.size() - 2;
  return {{broken, "T10", fault_place(broken.schedule, {.rank = 0, .at = reshard})}};
}

}  // namespace capo::testing::faults
