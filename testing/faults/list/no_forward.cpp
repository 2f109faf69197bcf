// All forwards are missing; the finding is shown at the first entry.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList no_forward(const TeOrder& sound, std::size_t /*choice*/) {
  TeOrder order = sound;
  std::erase_if(order.list.entries, [](const TeEntry& entry) { return entry.value > 0; });
  return {{order, "S06", FaultPlace{.index = 0}}};
}

}  // namespace capo::testing::faults
