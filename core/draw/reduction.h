// Edges of one kind with those left out that a path of the same kind says already.
//
// Where there are cycles, their strong components are condensed first: edges within a component
// stay, and between two components one edge stands for all. Tested by reduction_test.cpp.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace capo {

using DrawnEdge = std::pair<std::uint32_t, std::uint32_t>;

/// Nodes are below `nodes`; the result is sorted and holds no edge twice.
[[nodiscard]] std::vector<DrawnEdge> transitively_reduced(std::vector<DrawnEdge> edges,
                                                          std::uint32_t nodes);

}  // namespace capo
