// A task graph as a picture for Graphviz.
//
//   one box a rank, one line a stream; order on a stream is layout and a grey line, data solid,
//   messages bold, issue and waits dotted, events and collectives dashed
//
// What makes such a picture unreadable, and dot slow, is the number of edges: an edge that a path
// of the same kind says already is left out (boost::transitive_reduction, over the condensed graph
// where there are cycles). The edges of a witness are always there, and red. Node names depend on
// the task alone, so that two pictures can be compared: r2_c1_m3_F.
//
// Above some two thousand nodes dot takes minutes or fails; then there is no picture but an error
// that names the ways out. Tested by draw_test.cpp, which reads the output back, and by
// tests/cli/graph_test.cpp, which runs dot.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "core/graph/task_graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo {

struct DotOptions {
  // What is wrong is drawn all the same, whatever these leave out.
  std::vector<std::int32_t> ranks;  ///< to draw; empty: all
  /// The steps of each rank to draw, from the first up to but not including the second.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> window;
  bool collapse = false;  ///< transfers become edges between the computations that they join
  std::size_t max_nodes = 2000;
};

/// What is drawn in red: a cycle of waits, pairs of tasks that should not meet, and tasks, those of
/// cycle and pairs included.
struct Marks {
  std::vector<WaitEdge> cycle;
  std::vector<std::pair<TaskId, TaskId>> pairs;
  std::vector<TaskId> tasks;
};

/// `title` stands below the picture. An Error of kind Limit where there are too many nodes.
[[nodiscard]] Result<std::string> to_dot(const TaskGraph& graph, const Lowered& lowered,
                                         const Marks& marks, const std::string& title,
                                         const DotOptions& options);

}  // namespace capo
