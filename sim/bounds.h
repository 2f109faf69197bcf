// How fast any schedule could be: bounds below which no order of the same placement gets.
//
// A timeline alone does not say whether it is good; the distance to a bound does. Three bounds for
// a linear placement with costs that are the same everywhere (F, B, W and the latency c of a hop; p
// ranks, m microbatches, memory for K microbatches on a rank, kept share w of it behind B; k =
// floor(K)), for rank i from 0:
//
//   chain_i = (p-i)F + (p-1-i)(B+2c)             from the first F to the first B, at least
//   head_i  = max(0, chain_i - min(m,k) F)       idle before the first B: at most k F fit
//   idle_i  = head_i + floor((m-1-k)/k) win + last, where the windows F_j to B_j of microbatches
//             j = 0, k, 2k, ... and m-1 are disjoint and offer too little work (0 if m <= k)
//   L1 = start_i + m(F+B+W) + idle_i
//   L2 = start_i + head_i + m(F+B) + i(B+c) + W
//   L3 = start_i + m(chain_i + B + wW)/K         residence times microbatches <= memory times time
//
// start_i = i(F+c) for the makespan and 0 for the span, which L2 says nothing about. On a V
// placement with two chunks the same with chunk costs, twice the memory in chunks and the chain
// down and up. Everywhere else, and where costs differ: a rank's earliest beginning, its work, and
// what must follow its last task; and the longest way of one microbatch. Derived in the notes on
// published schedules; checked there against proven optima. Tested by bounds_test.cpp.

#pragma once

#include "core/graph/stage_map.h"
#include "sim/durations.h"
#include "sim/memory.h"

#include <cstdint>
#include <string>

namespace capo {

struct Bound {
  double value = 0;
  std::string by;          ///< "L1", "L2", "L3", "work", "path"
  std::int32_t rank = -1;  ///< at which it is reached; -1: at none in particular
};

struct Bounds {
  Bound makespan;
  Bound span;
  double memory =
      0;  ///< the limit K they hold for, in the unit of the memory model; infinite: none
};

/// For every order of the subject's tasks within `memory_limit` on each rank, which may be
/// infinite.
[[nodiscard]] Bounds lower_bounds(const Subject& subject, const Costs& costs,
                                  std::int32_t microbatches, const MemoryChange& memory,
                                  double memory_limit);

}  // namespace capo
