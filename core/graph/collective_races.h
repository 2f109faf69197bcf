// Collectives of one group that one rank may start in either order.
//
// Two streams of a rank are unordered but for events and data. A member whose collectives run on
// more than one stream must have a path from the end of each to the start of the next, or another
// member may see them the other way round. One clock per stream and vertex would be too much to
// keep; one pass over the graph for each stream in question is enough. Tested by
// collective_races_test.cpp.

#pragma once

#include "core/graph/task_graph.h"
#include "core/model/model.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

struct CollectiveRace {
  std::uint32_t group = 0;
  TaskId earlier = kNoTask;  ///< in the order of issue
  TaskId later = kNoTask;
};

/// The first race of each group, on its first member that has one. The graph has no cycle.
[[nodiscard]] std::vector<CollectiveRace> collective_races(const TaskGraph& graph,
                                                           std::span<const CollectiveGroup> groups);

}  // namespace capo
