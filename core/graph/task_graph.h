// The task graph: every task of every rank on its stream, and what must be over before what.
//
//   rank 0  comp   F1.0 ------> F1.1 ...          edges by kind: stream order, data, the issue of a
//           p2p       \-> send-F1.0 ...           transfer behind the computation before it, a
//                            ||                   message, a wait
//   rank 1  p2p           recv-F1.0
//           comp             \-> F1.0
//
// A computation is one vertex. A transfer or collective is two, its start and its end, since those
// that meet each start before any of them ends, and the members of a fused group start and end
// together.
// The schedule finishes exactly if this graph has no cycle: every order here is fixed, so there is
// no race to explore.
//
// compressed_sparse_row_graph with 32-bit types: 8 bytes a vertex and 5 an edge, and 20 for each
// that needs to be told which members of a composite or fused group it is between. Tested by
// task_graph_test.cpp; bench/graph prints time and bytes a task.

#pragma once

#include "core/graph/lowered.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace capo {

enum class EdgeKind : std::uint8_t {
  Stream,      ///< next on the same stream of computations
  Queue,       ///< next on the same communicator
  Issue,       ///< a transfer is issued behind the computations before it
  Data,        ///< what one makes the other reads
  Span,        ///< a transfer's start and its end
  Message,     ///< a send's start before its receive's end
  Rendezvous,  ///< a receive's start before its send's end
  Wait,        ///< a computation waits for a transfer that it does not read
  Event,       ///< next node of the same microbatch, on the other stream
  Collective,  ///< each member of a collective starts before any ends
};

using DependencyGraph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, EdgeKind,
                                       boost::no_property, std::uint32_t, std::uint32_t>;

using TaskId = std::uint32_t;
using Vertex = std::uint32_t;
constexpr TaskId kNoTask = 0xffffffff;

struct Task {
  RankId rank;
  StageId stage;
  MicrobatchId microbatch = kNoMicrobatch;
  std::uint32_t step = 0;    ///< of the rank's lowered order
  std::uint32_t stream = 0;  ///< of TaskGraph::streams
  Vertex start = 0;          ///< the vertex, or a transfer's first
  Kind kind = Kind::Idle;
  bool split = false;   ///< it has a start and an end
  bool never = false;   ///< it waits for something that nobody makes
  bool member = false;  ///< of a composite or fused group: others have its vertices too
};

/// Tasks of one rank that run one after another.
struct Stream {
  enum class Runs : std::uint8_t { Computations, Transfers, Collectives };

  RankId rank;
  Runs runs = Runs::Computations;
  std::int32_t peer_low = -1;   ///< of transfers: the ranks that the communicator joins, if fewer
  std::int32_t peer_high = -1;  ///< than all
  std::uint8_t communicator = 0;
  std::string name;  ///< of collectives: "comm" for dispatch and combine, "dp" for the others, or
                     ///< as their group says; of weight gradients that run apart: "wgrad"

  friend bool operator==(const Stream&, const Stream&) = default;
};

/// An edge, and the tasks that it is between.
struct TaskEdge {
  Vertex from;
  Vertex to;
  EdgeKind kind;
  TaskId before;
  TaskId after;
};

struct TaskGraph {
  std::vector<Task> tasks;       ///< rank by rank, in the order of issue
  std::vector<TaskId> first_of;  ///< the first task of each rank, and one past the last of all
  std::vector<Stream> streams;
  /// By vertex; of a fused group its first member, of the point where a collective's members meet
  /// the first of those.
  std::vector<TaskId> task_of;
  DependencyGraph edges;
  /// The edges at composites and fused groups that are one member's, which those of_all() are not;
  /// in the order in which they were put in.
  std::vector<TaskEdge> member_edges;

  [[nodiscard]] Vertex start(TaskId task) const { return tasks[task].start; }
  [[nodiscard]] Vertex end(TaskId task) const {
    return tasks[task].start + (tasks[task].split ? 1 : 0);
  }
  /// Calls visit(task) for each task of a vertex: one, or the members of a composite or fused
  /// group.
  template <typename Visit>
  void for_each_task(Vertex vertex, Visit visit) const {
    const Vertex first = tasks[task_of[vertex]].start;
    for (TaskId task = task_of[vertex]; task < tasks.size() && tasks[task].start == first; ++task) {
      visit(task);
    }
  }
  /// Calls visit(TaskEdge) for each edge: those of members last, and one that is for all members of
  /// a composite or fused group with the first.
  template <typename Visit>
  void for_each_task_edge(Visit visit) const {
    for (Vertex from = 0; from < task_of.size(); ++from) {
      const auto [first, last] = boost::out_edges(from, edges);
      for (auto edge = first; edge != last; ++edge) {
        const Vertex to = boost::target(*edge, edges);
        const TaskEdge found{from, to, edges[*edge], task_of[from], task_of[to]};
        const bool at_member = tasks[found.before].member || tasks[found.after].member;
        if (!at_member || of_all(found.kind)) visit(found);
      }
    }
    for (const TaskEdge& edge : member_edges) visit(edge);
  }
  /// Whether an edge of this kind is for all members of a composite or fused group.
  [[nodiscard]] static bool of_all(EdgeKind kind) {
    return kind == EdgeKind::Stream || kind == EdgeKind::Queue || kind == EdgeKind::Issue ||
           kind == EdgeKind::Span;
  }
  /// Whether the vertex is no task's but the point where the members of a collective meet.
  [[nodiscard]] bool is_meeting(Vertex vertex) const {
    const Vertex first = tasks[task_of[vertex]].start;
    return vertex > first + 1;
  }
};

/// A transfer or collective of a task graph that does not fit. Whoever builds the graph finds it;
/// the rules about transfers put it into words.
struct TransferFault {
  enum class Kind : std::uint8_t {
    Repeated,         ///< the same transfer again; `other` is the first
    Nowhere,          ///< no rank, or this very rank, holds the stage at the other end
    SendWithout,      ///< nobody receives it
    ReceiveWithout,   ///< nobody sends it
    NotReceived,      ///< a computation whose input nobody receives; `other` is its send, if any
    SendTooEarly,     ///< issued before `other`, which makes what it sends
    ReceiveTooLate,   ///< issued behind `other`, which reads what it receives
    Mismatch,         ///< the receive that NCCL pairs with the send `other`, which holds another
    CollectiveOrder,  ///< another member of its group performs `other` at this point, or nothing
  };

  Kind kind = Kind::Repeated;
  TaskId task = kNoTask;
  TaskId other = kNoTask;
  std::uint32_t group = 0;  ///< of the declared groups, for collectives
};

/// The step that a task of a graph made of `lowered` is.
[[nodiscard]] inline const Step& step_of(const Lowered& lowered, const Task& task) {
  return lowered.ranks[static_cast<std::size_t>(task.rank)][task.step];
}

}  // namespace capo
