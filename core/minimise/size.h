// How small a schedule is, and how far from its canonical order: what every step of minimise()
// makes less, so that there is no end of steps and no going in circles.
//
//   F1 B1 F2 W1 B2 W2       6 entries, 1 inversion: W1 and F2
//
// The canonical order runs one microbatch after the other, of each one chunk after the other, and
// of that F, B and W. Where chunks are wired to each other it is all forwards of the microbatch by
// stage and then all backwards the other way. An inversion is a pair of entries that stand the
// other way round. Tested by size_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <compare>
#include <cstdint>
#include <tuple>
#include <vector>

namespace capo {

/// Compared member by member, the first first.
struct Size {
  std::int64_t entries = 0;
  std::int64_t orders = 0;  ///< of capture and of replay
  std::int64_t chunks = 0;
  std::int64_t numbers = 0;     ///< the sum of all numbers in the text of the actions
  std::int64_t declared = 0;    ///< things stated beside the orders
  std::int64_t composites = 0;  ///< entries in one
  std::int64_t inversions = 0;

  friend auto operator<=>(const Size&, const Size&) = default;
};

[[nodiscard]] Size size_of(const Schedule& schedule);

/// Where an entry stands in the canonical order of its rank.
using CanonicalPlace = std::tuple<std::int32_t, bool, std::int32_t, int>;
[[nodiscard]] CanonicalPlace canonical_place(const Entry& entry, const RankOrder& rank,
                                             Topology topology);

}  // namespace capo
