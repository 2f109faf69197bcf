// Edges on their way into a task graph: three arrays, nine bytes an edge, since the graph's
// constructor reads them twice. An edge at a vertex that several tasks share keeps its two tasks as
// well. Tested through build_test.cpp.

#pragma once

#include "core/graph/task_graph.h"

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace capo {

class EdgeList {
 public:
  void reserve(std::size_t edges) {
    sources_.reserve(edges);
    targets_.reserve(edges);
    kinds_.reserve(edges);
  }
  void add(Vertex from, Vertex to, EdgeKind kind) {
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
    if (!graph.tasks[from.task].member && !graph.tasks[to.task].member) return;
    members_.push_back({from.vertex, to.vertex, kind, from.task, to.task});
  }
  [[nodiscard]] DependencyGraph graph(std::size_t vertices) const {
    return {boost::edges_are_unsorted_multi_pass, PairIterator{sources_.data(), targets_.data()},
            PairIterator{sources_.data() + sources_.size(), nullptr}, kinds_.begin(),
            static_cast<Vertex>(vertices)};
  }
  [[nodiscard]] std::vector<TaskEdge> take_member_edges() { return std::move(members_); }

 private:
  struct PairIterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::pair<Vertex, Vertex>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;

    const Vertex* source = nullptr;
    const Vertex* target = nullptr;

    value_type operator*() const { return {*source, *target}; }
    PairIterator& operator++() {
      ++source;
      ++target;
      return *this;
    }
    PairIterator operator++(int) {
      PairIterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const PairIterator& other) const { return source == other.source; }
    bool operator!=(const PairIterator& other) const { return source != other.source; }
    difference_type operator-(const PairIterator& other) const { return source - other.source; }
  };

  std::vector<Vertex> sources_;
  std::vector<Vertex> targets_;
  std::vector<EdgeKind> kinds_;
  std::vector<TaskEdge> members_;
};

}  // namespace capo
