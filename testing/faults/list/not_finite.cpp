// An entry becomes NaN or infinite: the sum of a missing value, a division by zero.

#include "testing/faults/faults.h"

#include <array>
#include <limits>

namespace capo::testing::faults {

BrokenList not_finite(const TeOrder& sound, std::size_t choice) {
  using Limits = std::numeric_limits<double>;
  constexpr std::array kValues{Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()};
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  order.list.entries[at] = {.value = kValues[choice / 7 % kValues.size()],
                            .type = NumberType::Float};
  return {{order, "S01", FaultPlace{.index = at}}};
}

}  // namespace capo::testing::faults
