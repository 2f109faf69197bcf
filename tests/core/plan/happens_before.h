// What is over before what in a task graph, by the transitive closure of its edges: slow, and of
// nothing but the edges.

#pragma once

#include "core/graph/task_graph.h"

#include <cstddef>
#include <vector>

namespace capo::testing_support {

class HappensBefore {
 public:
  explicit HappensBefore(const TaskGraph& graph) : graph_(graph) {
    const std::size_t vertices = graph.task_of.size();
    reached_.assign(vertices, std::vector<bool>(vertices, false));
    for (Vertex from = 0; from < vertices; ++from) visit(from, reached_[from]);
  }

  /// Whether a path of one edge or more leads from the one to the other.
  [[nodiscard]] bool reaches(Vertex from, Vertex to) const { return reached_[from][to]; }
  /// Whether the one task is over before the other begins.
  [[nodiscard]] bool over(TaskId task, TaskId before) const {
    return reaches(graph_.end(task), graph_.start(before));
  }

 private:
  void visit(Vertex from, std::vector<bool>& seen) const {
    std::vector<Vertex> open{from};
    while (!open.empty()) {
      const Vertex at = open.back();
      open.pop_back();
      graph_.edges.for_each_out(at, [&](Vertex to, EdgeKind) {
        if (seen[to]) return;
        seen[to] = true;
        open.push_back(to);
      });
    }
  }

  const TaskGraph& graph_;
  std::vector<std::vector<bool>> reached_;  // from, to
};

}  // namespace capo::testing_support
