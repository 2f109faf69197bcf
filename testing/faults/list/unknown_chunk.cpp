// An entry names a chunk beyond the declared ones.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList unknown_chunk(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const Kind kind = te_action(order.list.entries[at]).value().kind;
  order.list.entries[at] =
      te_entry(kind, order.chunks() + 1 + static_cast<std::int32_t>(choice / 7 % 3));
  return {{order, "S12", FaultPlace{.index = at}}};
}

}  // namespace capo::testing::faults
