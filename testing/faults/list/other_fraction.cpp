// An entry gets a fraction that it cannot have: `-1.25`, `-2.75`, a forward `1.5`.

#include "testing/faults/faults.h"

#include <array>
#include <cmath>

namespace capo::testing::faults {

BrokenList other_fraction(const TeOrder& sound, std::size_t choice) {
  constexpr std::array kFractions{0.25, 0.5, 0.75};
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  TeEntry& entry = order.list.entries[at];
  const bool forward = entry.value > 0;
  const double fraction = forward ? kFractions[choice / 7 % 3] : kFractions[choice / 7 % 2 * 2];
  const double size = std::floor(std::abs(entry.value)) + fraction;
  entry = {.value = forward ? size : -size, .type = NumberType::Float};
  return {{order, forward ? "S05" : "S02", FaultPlace{.index = at}}};
}

}  // namespace capo::testing::faults
