// A chunk has a weight gradient as an entry, and is declared not to delay it: the declaration is
// wrong, or the entry too much.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList undeclared_weight(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t c = choice % order.delays.size();
  const auto chunk = static_cast<std::int32_t>(c) + 1;
  if (order.delays[c]) {
    order.delays[c] = false;
    return {{order, "S17",
             FaultPlace{.index = places(order.list, Kind::BackwardWeight, chunk).front()}}};
  }
  const std::size_t at = chosen(places(order.list, Kind::Backward, chunk), choice / 7).value() + 1;
  order.list.entries.insert(order.list.entries.begin() + static_cast<std::ptrdiff_t>(at),
                            te_entry(Kind::BackwardWeight, chunk));
  return {{order, "S17", FaultPlace{.index = at}}};
}

}  // namespace capo::testing::faults
