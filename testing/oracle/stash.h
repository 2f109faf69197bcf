// The second opinion on paged stashes: which graphs reload for somebody else when they are
// replayed.
//
//   captured 0 1 2, replayed 1 0 2     1 has reloaded for 2, and 0 comes; 0 for 1, and 2 comes
//
// It plays the replay: each graph puts into a hand what the graph that was captured behind it
// reads, and whoever comes next looks into the hand. It shares no code with the product and
// includes only the standard library. Of one rank that replays all that it has captured. Tested by
// tests/testing/oracle/stash_test.cpp; that the product agrees is enumerated by capo_exhaustive and
// is a property, in tests/properties/replays_test.cpp.

#pragma once

#include <vector>

namespace capo::oracle {

/// The places in the replay of graphs whose reload the next one has no use for, ascending; a graph
/// is any number, each there once.
[[nodiscard]] std::vector<int> misled_reloads(const std::vector<int>& captured,
                                              const std::vector<int>& replayed);

}  // namespace capo::oracle
