// The first two ranks exchange tokens at the end of their orders, the one dispatching before it
// combines and the other the other way round; the finding names the dispatch first.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/transfers.h>

#include <array>

namespace capo::testing::faults {

BrokenCommunication crossed_collectives(const Communication& sound, std::size_t /*choice*/) {
  if (sound.environment.p2p) return std::nullopt;  // Megatron makes exchanges of its own
  Communication broken = sound;
  constexpr std::array kKinds{Kind::DispatchForward, Kind::CombineForward};
  broken.groups.push_back(
      {.name = "experts", .members = {0, 1}, .actions = {kKinds.begin(), kKinds.end()}});
  for (const std::size_t rank : {0, 1}) {
    for (const std::size_t i : {0, 1}) {
      broken.schedule.ranks[rank].order.push_back(
          {.chunk = 1, .microbatch = 0, .kind = kKinds[rank == 0 ? i : 1 - i]});
    }
  }
  const std::size_t dispatch = broken.schedule.ranks[0].order.size() - 2;
  return {{broken, "T10", fault_place(broken.schedule, {.rank = 0, .at = dispatch})}};
}

}  // namespace capo::testing::faults
