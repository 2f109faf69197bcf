// Runs a task graph on paper: every task that can start does, until none can.
//
// Every order in the graph is fixed, so which tasks run in the end does not depend on the order in
// which they are picked. If some never run, they form the stuck state: on each stream a first task
// that waits, and among those a cycle of waits or a task that waits for something that nobody
// makes.
//
// This is Kahn's method rather than boost::topological_sort, since it yields the stuck state and
// not only the fact that there is one, and is faster (bench/graph prints both). Tested by
// execution_test.cpp and shortest_cycle_test.cpp.

#pragma once

#include "core/graph/task_graph.h"

#include <cstddef>
#include <vector>

namespace capo {

struct Execution {
  std::vector<bool> ran;  ///< by vertex: whether it ran
  std::size_t stuck = 0;  ///< vertices that never run

  [[nodiscard]] bool finishes() const { return stuck == 0; }
};

[[nodiscard]] Execution execute(const TaskGraph& graph);

/// The first task that never runs, rank by rank, of a graph that does not finish: the first
/// transfer or collective if there is one, since computations wait for those.
[[nodiscard]] TaskId first_stuck(const TaskGraph& graph, const Execution& execution);

/// A step of a cycle of waits.
struct WaitEdge {
  TaskId task;
  EdgeKind kind;  ///< the reason why it waits
  /// The task that it waits for: that of the next edge (of the first for the last edge), or another
  /// member of its composite or fused group.
  TaskId waited;
};

/// The shortest cycle of waits, where any distance along one stream or queue counts as one step.
/// The search begins at the first tasks of the stuck state, goes on everywhere, and stops after it
/// has looked at `max_work` edges. Up to some thousand stuck tasks the cycle is the shortest of
/// all; beyond that it is the shortest through the vertices that the search came to, one of which
/// is known to be on a cycle. Empty if there is no cycle: then tasks wait for something that nobody
/// makes.
[[nodiscard]] std::vector<WaitEdge> shortest_cycle(const TaskGraph& graph,
                                                   const Execution& execution,
                                                   std::uint64_t max_work = 10'000'000);

/// The ranks of a cycle's tasks, ascending.
[[nodiscard]] std::vector<std::int32_t> ranks_of(const TaskGraph& graph,
                                                 const std::vector<WaitEdge>& cycle);

}  // namespace capo
