// The first two ranks exchange the tokens of a first forward, and not in the same sequence: the one
// dispatches before it combines and the other combines first; or one dispatches tokens of another
// microbatch, or combines, where the other dispatches; or one of them combines and the other does
// not.

#include "testing/edits/entries.h"
#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include <array>
#include <cstddef>
#include <vector>

namespace capo::testing::faults {

namespace {

constexpr Entry kDispatch{.chunk = 1, .microbatch = 0, .kind = Kind::DispatchForward};
constexpr Entry kNextDispatch{.chunk = 1, .microbatch = 1, .kind = Kind::DispatchForward};
constexpr Entry kCombine{.chunk = 1, .microbatch = 0, .kind = Kind::CombineForward};

using Exchanges = std::vector<Entry>;

struct Crossing {
  std::array<Exchanges, 2> of;  ///< of the two ranks
  std::size_t rank = 0;         ///< whose exchange is named first
  std::size_t at = 0;           ///< which of them
};

Crossing crossing_by(std::size_t choice, std::int32_t microbatches) {
  if (choice % 3 == 1) {
    return {.of = {Exchanges{kDispatch}, Exchanges{microbatches > 1 ? kNextDispatch : kCombine}}};
  }
  if (choice % 3 == 2)
    return {.of = {Exchanges{kDispatch}, Exchanges{kDispatch, kCombine}}, .rank = 1, .at = 1};
  return {.of = {Exchanges{kDispatch, kCombine}, Exchanges{kCombine, kDispatch}}};
}

}  // namespace

BrokenCommunication crossed_collectives(const Communication& sound, std::size_t choice) {
  if (sound.environment.p2p) return std::nullopt;  // Megatron makes exchanges of its own
  Communication broken = sound;
  broken.groups.push_back({.name = "experts",
                           .members = {0, 1},
                           .actions = {Kind::DispatchForward, Kind::CombineForward}});
  const Crossing crossing = crossing_by(choice, *sound.schedule.microbatches);
  EntryPlace named{};
  for (const std::size_t rank : {0, 1}) {
    const Exchanges& exchanges = crossing.of[rank];
    const Action forward{
        .kind = Kind::Forward, .chunk = 1, .microbatch = exchanges.front().microbatch};
    EntryPlace behind{.rank = rank, .at = find(broken.schedule.ranks[rank], forward).value()};
    for (std::size_t at = 0; at < exchanges.size(); ++at) {
      behind = put_behind(broken.schedule, behind, exchanges[at]);
      if (rank == crossing.rank && at == crossing.at) named = behind;
    }
  }
  return {{broken, "T10", fault_place(broken.schedule, named)}};
}

}  // namespace capo::testing::faults
