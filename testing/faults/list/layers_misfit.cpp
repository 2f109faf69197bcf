// A chunk is declared to have fewer layers than none, or the layers of one chunk are left out.
// Declarations have no entry to point at.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList layers_misfit(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  auto& layers = order.layers.values;
  if (choice % 2 == 0 && layers.size() > 1) {
    layers.pop_back();
  } else {
    layers[choice / 2 % layers.size()] = -1;
  }
  return {{order, "S18", std::nullopt}};
}

}  // namespace capo::testing::faults
