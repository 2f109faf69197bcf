// Edges on their way into a task graph: three arrays, nine bytes an edge, since the graph's
// constructor reads them several times. An edge from the vertex before its target keeps no source:
// nearly half of them are such, so that five bytes do. An edge at a vertex that several tasks share
// keeps its two tasks as well. Tested through build_test.cpp.

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
    const bool next = from + 1 == to;
    if (!next) sources_.push_back(from);
    targets_.push_back(to);
    kinds_.push_back(KindOf(kind, next));
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
    const KindOf* const end = kinds_.data() + kinds_.size();
    return {boost::edges_are_unsorted_multi_pass,
            PairIterator{kinds_.data(), targets_.data(), sources_.data()},
            PairIterator{end, nullptr, nullptr}, KindIterator{kinds_.data()},
            static_cast<Vertex>(vertices)};
  }
  [[nodiscard]] std::vector<TaskEdge> take_member_edges() { return std::move(members_); }

 private:
  struct KindOf {
    KindOf(EdgeKind of, bool is_next) : kind(of), next(is_next) {}

    EdgeKind kind : 7;
    bool next : 1;  // the target is the vertex behind the source
  };

  struct PairIterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::pair<Vertex, Vertex>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;

    const KindOf* kind = nullptr;
    const Vertex* target = nullptr;
    const Vertex* source = nullptr;  // of this edge, or of the first behind it that keeps its own

    value_type operator*() const { return {kind->next ? *target - 1 : *source, *target}; }
    PairIterator& operator++() {
      if (!kind->next) ++source;
      ++kind;
      ++target;
      return *this;
    }
    PairIterator operator++(int) {
      PairIterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const PairIterator& other) const { return kind == other.kind; }
    bool operator!=(const PairIterator& other) const { return kind != other.kind; }
    difference_type operator-(const PairIterator& other) const { return kind - other.kind; }
  };

  struct KindIterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = EdgeKind;
    using difference_type = std::ptrdiff_t;
    using pointer = const EdgeKind*;
    using reference = EdgeKind;

    const KindOf* at = nullptr;

    EdgeKind operator*() const { return at->kind; }
    KindIterator& operator++() {
      ++at;
      return *this;
    }
    KindIterator operator++(int) { return {at++}; }
    bool operator==(const KindIterator& other) const { return at == other.at; }
    bool operator!=(const KindIterator& other) const { return at != other.at; }
  };

  std::vector<Vertex> sources_;
  std::vector<Vertex> targets_;
  std::vector<KindOf> kinds_;
  std::vector<TaskEdge> members_;
};

}  // namespace capo
