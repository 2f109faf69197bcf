// A schedule as a picture for Graphviz: checked, wired as the rules wire it, and the witness of the
// first finding in red.
//
//   one box a rank, one row a stream; tasks coloured by kind; order on a stream is a grey line,
//   data solid, messages bold, issue and waits dotted, events and collectives dashed
//
// The picture shows the graph that the verdict is about: with transfers if ranks communicate, else
// without. If something else is replayed than was captured, the replay is drawn, since it is what
// runs, or the capture if the finding stands there; the title says which. Orders with errors of
// their own (a backward too many) are drawn as they stand, entry after entry, with each finding at
// its place, since there is no telling which task an entry is.
//
// The number of edges makes such a picture unreadable: an edge that a path of the same kind says
// already is left out. The edges of a witness are always there, and red. Node names depend on the
// task alone, so that two pictures can be compared: r2_c1_m3_F. All places are written too
// (lanes.h), for Graphviz's own layout makes a ribbon of a long order and mixes ranks.
//
// Above some two thousand nodes nobody reads such a picture; then there is an error that names the
// ways out. Tested by draw_test.cpp, which reads the output back, and by tests/cli/graph_test.cpp,
// which runs dot.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "core/draw/drawing.h"
#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "core/graph/task_graph.h"
#include "core/order/input.h"
#include "core/rules/check.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo {

class Wiring;

struct DotOptions {
  // A witness is drawn whatever these leave out.
  std::vector<std::int32_t> ranks;  ///< to draw; empty: all
  /// The steps of each rank to draw, from the first up to but not including the second.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> window;
  bool collapse = false;    ///< transfers become edges between the computations that they join
  std::size_t columns = 0;  ///< of a line; 0: so many that the page is a bit wider than high
  std::size_t max_nodes = 2000;
};

/// An edge says in the words of a finding what one task does to another: "`1` at index 2
/// overwrites it".
struct ToldEdge {
  TaskId from = 0;
  TaskId to = 0;
  std::string words;
};

/// Tasks and edges that are drawn in red: a cycle of waits, pairs of tasks that should not meet,
/// what a finding tells of tasks one after another, and tasks, those of the edges included.
struct Marks {
  std::vector<WaitEdge> cycle;
  std::vector<std::pair<TaskId, TaskId>> pairs;
  std::vector<ToldEdge> told;
  std::vector<TaskId> tasks;
};

/// A graph as DOT; `title` stands below the picture. An Error of kind Limit if there are too many
/// nodes.
[[nodiscard]] Result<std::string> to_dot(const TaskGraph& graph, const Lowered& lowered,
                                         const Marks& marks, const std::string& title,
                                         const DotOptions& options);

[[nodiscard]] Result<std::string> to_dot(const Drawing& drawing, const DotOptions& options);

/// DOT, or an Error of kind Limit if it would be too large.
[[nodiscard]] Result<std::string> draw(const Input& input, const CheckOptions& options,
                                       const DotOptions& dot);

}  // namespace capo
