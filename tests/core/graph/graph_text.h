// A task graph in words, for tests that look at single edges.
//
//   0:F1.0 -> 0:send-F1.0[ issue         rank 0's send starts behind the forward before it
//   1:recv-F1.0] -> 1:F1.0 data          what is received is there when the receive ends
//
// A computation is one vertex; of a transfer or collective `[` is the start and `]` the end. Where
// the members of a collective meet is `meet:` and the first of them.

#pragma once

#include "core/graph/task_graph.h"
#include "tests/core/graph/order_text.h"

#include <algorithm>
#include <string>
#include <vector>

namespace capo::testing_support {

inline const char* word_of(EdgeKind kind) {
  constexpr const char* kWords[] = {"stream",  "queue",      "issue", "data",  "span",
                                    "message", "rendezvous", "wait",  "event", "collective"};
  return kWords[static_cast<int>(kind)];
}

/// "0:F1.0": the rank and the step that the task was made of.
inline std::string task_name(const TaskGraph& graph, const Lowered& lowered, TaskId id) {
  if (id == kNoTask) return "none";
  const Task& task = graph.tasks[id];
  const Step& step = lowered.ranks[static_cast<std::size_t>(task.rank)][task.step];
  return std::to_string(task.rank) + ":" + to_text(step);
}

inline std::string vertex_name(const TaskGraph& graph, const Lowered& lowered, Vertex vertex) {
  const TaskId id = graph.task_of[vertex];
  const std::string name = task_name(graph, lowered, id);
  if (graph.is_meeting(vertex)) return "meet:" + name;
  if (!graph.tasks[id].split) return name;
  return name + (vertex == graph.start(id) ? "[" : "]");
}

/// All edges, by the vertex that they leave and in the order in which they were put in.
inline std::vector<std::string> edges_of(const TaskGraph& graph, const Lowered& lowered) {
  std::vector<std::string> lines;
  for (Vertex from = 0; from < graph.task_of.size(); ++from) {
    graph.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
      lines.push_back(vertex_name(graph, lowered, from) + " -> " + vertex_name(graph, lowered, to) +
                      " " + word_of(kind));
    });
  }
  return lines;
}

/// Those of one kind.
inline std::vector<std::string> edges_of(const TaskGraph& graph, const Lowered& lowered,
                                         EdgeKind kind) {
  std::vector<std::string> lines = edges_of(graph, lowered);
  std::erase_if(lines, [&](const std::string& line) {
    return !line.ends_with(std::string(" ") + word_of(kind));
  });
  return lines;
}

}  // namespace capo::testing_support
