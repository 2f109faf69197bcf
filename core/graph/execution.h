// Running a task graph on paper: whatever can start does, until nothing can.
//
// Every order in the graph is fixed, so which tasks run in the end does not depend on the order in
// which they are picked. If some never run, they form the stuck state: on each stream a first task
// that waits, and among those a cycle of waits or something that waits for what nobody makes.
//
// Kahn's method rather than boost::topological_sort: what is asked for is the stuck state and not
// only that there is one, and it is faster (bench/graph prints both). Tested by execution_test.cpp.

#pragma once

#include "core/graph/task_graph.h"

#include <cstddef>
#include <vector>

namespace capo {

struct Execution {
  std::vector<bool> ran;  ///< by vertex
  std::size_t stuck = 0;  ///< vertices that never run

  [[nodiscard]] bool finishes() const { return stuck == 0; }
};

[[nodiscard]] Execution execute(const TaskGraph& graph);

/// A step of a cycle of waits.
struct WaitEdge {
  TaskId task;
  EdgeKind kind;  ///< why it waits
  TaskId waited;  ///< what for: the next one's task (the last one's the first), or another member
                  ///< of its composite or fused group
};

/// The shortest cycle of waits, where any distance along one stream or queue counts as one step.
/// The search begins at the first tasks of the stuck state, goes on everywhere, and stops after
/// `max_work` edges looked at: up to some thousand stuck tasks the cycle is the shortest of all,
/// beyond that of those through the vertices that it came to, among which there is one that is
/// known to be on a cycle. Empty if there is none: then tasks wait for what nobody makes.
[[nodiscard]] std::vector<WaitEdge> shortest_cycle(const TaskGraph& graph,
                                                   const Execution& execution,
                                                   std::uint64_t max_work = 10'000'000);

}  // namespace capo
