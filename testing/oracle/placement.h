// The second opinion on placement: which stage each chunk of a rank is, by walking over the ranks
// as a microbatch does.
//
//   DownAndUp, two ranks of two chunks:   rank 0: 0 3
//                                         rank 1: 1 2
//
// Every visit of a rank takes the next stage, also where the rank has no chunk left for it. It
// shares no code with the product and includes only the standard library. Tested by
// tests/testing/oracle/placement_test.cpp; that the product agrees is a property, in
// tests/properties/placement_test.cpp.

#pragma once

#include <vector>

namespace capo::oracle {

enum class Walk {
  RankByRank,    ///< all chunks of a rank, and then the next one's
  Down,          ///< a chunk of each rank, from the first to the last, again and again
  DownAndUp,     ///< and every second time back from the last to the first
  FromBothEnds,  ///< every second chunk down, in a pipeline by itself, and the others up
};

/// Stages by rank and chunk; `chunks` says how many each rank has.
[[nodiscard]] std::vector<std::vector<int>> stages(Walk walk, const std::vector<int>& chunks);

}  // namespace capo::oracle
