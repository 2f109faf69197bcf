// One entry is missing.
//
// A missing forward is reported at the last forward that the chunk still has, else at its first
// backward, and where none is left in the whole list as an order without a forward; a missing
// backward at the last forward, which has none now; a missing weight gradient at the last backward.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList drop_entry(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const Action gone = te_action(order.list.entries[at]).value();
  order.list.entries.erase(order.list.entries.begin() + static_cast<std::ptrdiff_t>(at));
  const auto last = static_cast<std::size_t>(order.microbatches) - 1;
  const auto forwards = places(order.list, Kind::Forward, gone.chunk);
  const auto backwards = places(order.list, Kind::Backward, gone.chunk);
  switch (gone.kind) {
    case Kind::Forward:
      if (!forwards.empty()) return {{order, "S14", FaultPlace{.index = forwards.back()}}};
      if (order.chunks() == 1) return {{order, "S06", FaultPlace{.index = 0}}};
      return {{order, "S14", FaultPlace{.index = backwards.front()}}};
    case Kind::Backward:
      return {{order, "S15", FaultPlace{.index = forwards[last]}}};
    default:
      return {{order, "S16", FaultPlace{.index = backwards[last]}}};
  }
}

}  // namespace capo::testing::faults
