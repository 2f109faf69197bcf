// A chunk's gradients are reduced once more, at the end of the order.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules reduce_twice(const Declared& sound, std::size_t choice) {
  const auto reduction = chosen(reductions(sound.schedule), choice);
  if (!reduction) return std::nullopt;
  Declared broken = sound;
  auto& order = broken.schedule.ranks[reduction->rank].order;
  Entry again = order[reduction->at];
  again.group = Group::Alone;
  order.push_back(again);
  const EntryPlace place{.rank = reduction->rank, .at = order.size() - 1};
  return {{broken, "G15", fault_place(broken.schedule, place)}};
}

}  // namespace capo::testing::faults
