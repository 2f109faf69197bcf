// The edges of a task graph by the vertex that they leave, in the order in which they were added.
//
// A vertex mostly goes on to the one behind it: a task on its stream, or a transfer from its start
// to its end. If such an edge is the first of its vertex, it is kept as its kind alone:
//
//   0 -> 1 stream, 0 -> 7 data, 1 -> 2 stream       first_  stream  stream  ...
//                                                   begin_  0       1       1  ...
//                                                   targets_  7     kinds_  data
//
// So many vertices take 5 bytes and an edge, the others 5 bytes more for each. Tested by
// task_graph_test.cpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace capo {

using Vertex = std::uint32_t;

enum class EdgeKind : std::uint8_t {
  Stream,      ///< to the next task on the same stream of computations
  Queue,       ///< to the next task on the same communicator
  Issue,       ///< from a computation to a transfer that is issued behind it
  Data,        ///< from a task to one that reads its output
  Span,        ///< from a transfer's start to its end
  Message,     ///< from a send's start to its receive's end
  Rendezvous,  ///< from a receive's start to its send's end
  Wait,        ///< from a transfer to a computation that waits for it without reading it
  Event,       ///< to the next node of the same microbatch, on another stream
  Collective,  ///< from each start to the meeting point of a collective, and on to each end
};

/// Tells whether a vertex has edges, and the kind of the first if it leads to the vertex behind.
class FirstEdge {
 public:
  constexpr FirstEdge() = default;
  static constexpr FirstEdge to_next(EdgeKind kind) {
    return FirstEdge(static_cast<std::uint8_t>(kind));
  }
  static constexpr FirstEdge listed() { return FirstEdge(kListed); }

  [[nodiscard]] constexpr bool is_none() const { return is_ == kNone; }
  [[nodiscard]] constexpr bool is_to_next() const { return is_ < kListed; }
  /// Precondition: it leads to the next vertex.
  [[nodiscard]] constexpr EdgeKind kind() const { return static_cast<EdgeKind>(is_); }

 private:
  static constexpr std::uint8_t kListed = 0xfe;
  static constexpr std::uint8_t kNone = 0xff;

  constexpr explicit FirstEdge(std::uint8_t is) : is_(is) {}

  std::uint8_t is_ = kNone;
};

class DependencyGraph {
 public:
  DependencyGraph() = default;
  /// Takes the first edges of all vertices, and the others, which have to be listed in the order in
  /// which they were added.
  DependencyGraph(std::vector<FirstEdge> first, std::span<const Vertex> sources,
                  std::span<const Vertex> targets, std::span<const EdgeKind> kinds)
      : first_(std::move(first)),
        begin_(first_.size() + 1),
        targets_(targets.size()),
        kinds_(kinds.size()) {
    for (const Vertex source : sources) ++begin_[source];
    std::uint32_t sum = 0;
    for (std::uint32_t& begin : begin_) begin = sum += begin;
    // Each is the end of a vertex's edges, and becomes their beginning as they are put in.
    for (std::size_t at = sources.size(); at-- > 0;) {
      const std::uint32_t place = --begin_[sources[at]];
      targets_[place] = targets[at];
      kinds_[place] = kinds[at];
    }
  }

  [[nodiscard]] std::size_t vertices() const { return first_.size(); }
  /// Calls visit(target, kind) for every edge out of `from`.
  template <typename Visit>
  void for_each_out(Vertex from, Visit visit) const {
    if (first_[from].is_to_next()) visit(from + 1, first_[from].kind());
    const std::uint32_t end = begin_[from + 1];
    for (std::uint32_t at = begin_[from]; at < end; ++at) visit(targets_[at], kinds_[at]);
  }
  [[nodiscard]] std::size_t out_degree(Vertex from) const {
    return begin_[from + 1] - begin_[from] + (first_[from].is_to_next() ? 1 : 0);
  }

 private:
  std::vector<FirstEdge> first_;
  std::vector<std::uint32_t> begin_;  // of each vertex's other edges, and one past the last of all
  std::vector<Vertex> targets_;
  std::vector<EdgeKind> kinds_;
};

}  // namespace capo
