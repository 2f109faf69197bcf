// The size of a schedule, and its distance from the canonical order. Every step of minimise() makes
// this measure smaller, so that steps end and never go in circles.
//
//   F1 B1 F2 W1 B2 W2       6 entries, 1 inversion: W1 and F2
//
// The canonical order runs one microbatch after the other, within it one chunk after the other, and
// within that F, B and W. If chunks are wired to each other, all forwards of a microbatch run by
// stage and then all backwards the other way. An inversion is a pair of entries that stand the
// other way round. Tested by size_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <compare>
#include <cstdint>
#include <tuple>
#include <vector>

namespace capo {

/// Sizes compare member by member, from the first.
struct Size {
  std::int64_t entries = 0;
  std::int64_t orders = 0;  ///< orders of capture and of replay
  std::int64_t chunks = 0;
  std::int64_t numbers = 0;     ///< the sum of all numbers in the actions
  std::int64_t declared = 0;    ///< declarations beside the orders
  std::int64_t composites = 0;  ///< entries in composites
  std::int64_t inversions = 0;

  friend auto operator<=>(const Size&, const Size&) = default;
};

[[nodiscard]] Size size_of(const Schedule& schedule);

/// The place of an entry in the canonical order of its rank; smaller is earlier.
using CanonicalPlace = std::tuple<std::int32_t, bool, std::int32_t, int>;
[[nodiscard]] CanonicalPlace canonical_place(const Entry& entry, const RankOrder& rank,
                                             Topology topology);

}  // namespace capo
