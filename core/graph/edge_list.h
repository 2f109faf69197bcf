// Edges on their way into a task graph: an array of each end and one of kinds, nine bytes an edge,
// since the graph's constructor reads them twice. The edge that DependencyGraph keeps as its kind
// alone takes one byte here as well: nearly half of them are such. An edge at a vertex that several
// tasks share keeps its two tasks as well. Tested through build_test.cpp.

#pragma once

#include "core/graph/dependency_graph.h"
#include "core/graph/task_graph.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace capo {

class EdgeList {
 public:
  void reserve(std::size_t vertices, std::size_t edges) {
    first_.reserve(vertices);
    sources_.reserve(edges);
    targets_.reserve(edges);
    kinds_.reserve(edges);
  }
  void add(Vertex from, Vertex to, EdgeKind kind) {
    if (from >= first_.size()) first_.resize(from + 1);
    const bool is_first = first_[from].is_none();
    if (is_first) first_[from] = from + 1 == to ? FirstEdge::to_next(kind) : FirstEdge::listed();
    if (is_first && from + 1 == to) return;
    sources_.push_back(from);
    targets_.push_back(to);
    kinds_.push_back(kind);
  }
  /// A vertex, and the task that the edge begins or ends at.
  struct End {
    TaskId task;
    Vertex vertex;
  };
  /// Adds an edge between two tasks. Precondition: both are in the graph.
  void add(const TaskGraph& graph, End from, End to, EdgeKind kind) {
    add(from.vertex, to.vertex, kind);
    if (!graph.tasks.is_member(from.task) && !graph.tasks.is_member(to.task)) return;
    members_.push_back({from.vertex, to.vertex, kind, from.task, to.task});
  }
  /// Precondition: nobody adds an edge any more.
  [[nodiscard]] DependencyGraph take_graph(std::size_t vertices) {
    first_.resize(vertices);
    return {std::move(first_), sources_, targets_, kinds_};
  }
  [[nodiscard]] std::vector<TaskEdge> take_member_edges() { return std::move(members_); }

 private:
  std::vector<FirstEdge> first_;
  std::vector<Vertex> sources_;
  std::vector<Vertex> targets_;
  std::vector<EdgeKind> kinds_;
  std::vector<TaskEdge> members_;
};

}  // namespace capo
