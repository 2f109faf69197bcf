// The first two ranks exchange tokens at the end of their orders, and not in the same sequence: the
// one dispatches before it combines and the other combines first; or they are at different
// microbatches; or one of them combines and the other does not.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/transfers.h>

#include <array>
#include <vector>

namespace capo::testing::faults {

namespace {

using Exchanges = std::vector<Entry>;

Entry dispatch(std::int32_t microbatch) {
  return {.chunk = 1, .microbatch = microbatch, .kind = Kind::DispatchForward};
}

Entry combine(std::int32_t microbatch) {
  return {.chunk = 1, .microbatch = microbatch, .kind = Kind::CombineForward};
}

struct Crossing {
  std::array<Exchanges, 2> of;  ///< of the two ranks
  std::size_t rank = 0;         ///< whose exchange is named first
  std::size_t at = 0;           ///< which of them
};

Crossing crossing_by(std::size_t choice, std::int32_t microbatches) {
  if (choice % 3 == 1 && microbatches > 1)
    return {.of = {Exchanges{dispatch(0), dispatch(1)}, Exchanges{dispatch(1), dispatch(0)}}};
  if (choice % 3 == 2)
    return {.of = {Exchanges{dispatch(0)}, Exchanges{dispatch(0), combine(0)}}, .rank = 1, .at = 1};
  return {.of = {Exchanges{dispatch(0), combine(0)}, Exchanges{combine(0), dispatch(0)}}};
}

}  // namespace

BrokenCommunication crossed_collectives(const Communication& sound, std::size_t choice) {
  if (sound.environment.p2p) return std::nullopt;  // Megatron makes exchanges of its own
  Communication broken = sound;
  broken.groups.push_back({.name = "experts",
                           .members = {0, 1},
                           .actions = {Kind::DispatchForward, Kind::CombineForward}});
  const Crossing crossing = crossing_by(choice, *sound.schedule.microbatches);
  const std::size_t first = broken.schedule.ranks[crossing.rank].order.size();
  for (const std::size_t rank : {0, 1}) {
    auto& order = broken.schedule.ranks[rank].order;
    order.insert(order.end(), crossing.of[rank].begin(), crossing.of[rank].end());
  }
  return {{broken, "T10",
           fault_place(broken.schedule, {.rank = crossing.rank, .at = first + crossing.at})}};
}

}  // namespace capo::testing::faults
