// A weight gradient stands before its own backward.
//
//   [1, -1, -1.5]   ->   [1, -1.5, -1]
//
// As with backward_first, it is a fault where it moves before a backward that all weight gradients
// so far were behind of.

#include "testing/faults/faults.h"

#include <algorithm>
#include <utility>

namespace capo::testing::faults {

BrokenList weight_first(const TeOrder& sound, std::size_t choice) {
  std::vector<std::pair<std::size_t, std::size_t>> moves;  // from, to
  for (std::int32_t chunk = 1; chunk <= sound.chunks(); ++chunk) {
    const auto backwards = places(sound.list, Kind::Backward, chunk);
    const auto weights = places(sound.list, Kind::BackwardWeight, chunk);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (k == 0 || weights[k - 1] < backwards[k]) moves.emplace_back(weights[k], backwards[k]);
    }
  }
  const auto move = chosen(moves, choice);
  if (!move) return std::nullopt;
  TeOrder order = sound;
  const auto place = [&](std::size_t at) {
    return order.list.entries.begin() + static_cast<std::ptrdiff_t>(at);
  };
  std::rotate(place(move->second), place(move->first), place(move->first + 1));
  return {{order, "S24", FaultPlace{.index = move->second}}};
}

}  // namespace capo::testing::faults
