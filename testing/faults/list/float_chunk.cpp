// A forward or backward is written as a float: `1.0`, as NumPy or a division makes them.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList float_chunk(const TeOrder& sound, std::size_t choice) {
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < sound.list.entries.size(); ++i) {
    if (sound.list.entries[i].type == NumberType::Integer) whole.push_back(i);
  }
  TeOrder order = sound;
  const std::size_t at = chosen(whole, choice).value();
  order.list.entries[at].type = NumberType::Float;
  return {{order, "S03", FaultPlace{.index = at}}};
}

}  // namespace capo::testing::faults
