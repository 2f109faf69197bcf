// An entry names chunk 0, as who counts chunks from 0 would: `0`, `-0.0`, `-0.5`.

#include "testing/faults/faults.h"

#include <array>

namespace capo::testing::faults {

BrokenList chunk_zero(const TeOrder& sound, std::size_t choice) {
  constexpr std::array<TeEntry, 3> kZeros{{{.value = 0},
                                           {.value = -0.0, .type = NumberType::Float},
                                           {.value = -0.5, .type = NumberType::Float}}};
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  order.list.entries[at] = kZeros[choice / 7 % kZeros.size()];
  return {{order, "S04", FaultPlace{.index = at}}};
}

}  // namespace capo::testing::faults
