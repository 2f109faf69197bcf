// A chunk that is declared never runs. Where it would run nobody can say, so the finding has no
// place.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList absent_chunk(const TeOrder& sound, std::size_t choice) {
  if (sound.chunks() < 2) return std::nullopt;
  TeOrder order = sound;
  const auto absent = static_cast<std::int32_t>(choice % order.delays.size()) + 1;
  std::erase_if(order.list.entries, [absent](const TeEntry& entry) {
    return te_action(entry).value().chunk == absent;
  });
  return {{order, "S13", std::nullopt}};
}

}  // namespace capo::testing::faults
