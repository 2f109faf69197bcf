// A backward stands before its own forward.
//
//   [1, 1, -1, -1]   ->   [-1, 1, 1, -1]
//
// Microbatches are counted, so a backward that moves ahead of others only takes their turn: it is a
// fault where it moves before a forward that all backwards so far were behind of.

#include "testing/faults/faults.h"

#include <algorithm>
#include <utility>

namespace capo::testing::faults {

BrokenList backward_first(const TeOrder& sound, std::size_t choice) {
  std::vector<std::pair<std::size_t, std::size_t>> moves;  // from, to
  for (std::int32_t chunk = 1; chunk <= sound.chunks(); ++chunk) {
    const auto forwards = places(sound.list, Kind::Forward, chunk);
    const auto backwards = places(sound.list, Kind::Backward, chunk);
    for (std::size_t k = 0; k < forwards.size(); ++k) {
      if (k == 0 || backwards[k - 1] < forwards[k]) moves.emplace_back(backwards[k], forwards[k]);
    }
  }
  const auto [from, to] = chosen(moves, choice).value();
  TeOrder order = sound;
  const auto place = [&](std::size_t at) {
    return order.list.entries.begin() + static_cast<std::ptrdiff_t>(at);
  };
  std::rotate(place(to), place(from), place(from + 1));
  return {{order, "S23", FaultPlace{.index = to}}};
}

}  // namespace capo::testing::faults
