// The task graph: every task of every rank on its stream, and an edge from each task to those that
// wait for it.
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
  std::uint32_t step = 0;    ///< position in the rank's lowered order
  std::uint32_t stream = 0;  ///< position in TaskGraph::streams
  Vertex start = 0;          ///< its vertex, or the first of its two
  Kind kind = Kind::Idle;
  bool split = false;   ///< it has two vertices, a start and an end
  bool never = false;   ///< it waits for something that no task makes
  bool member = false;  ///< it shares its vertices with others of a composite or fused group
};

/// Tasks of one rank that run one after another.
struct Stream {
  enum class Runs : std::uint8_t { Computations, Transfers, Collectives };

  RankId rank;
  Runs runs = Runs::Computations;
  /// The two ranks that a communicator of transfers joins; -1: it joins all ranks.
  std::int32_t peer_low = -1;
  std::int32_t peer_high = -1;
  std::uint8_t communicator = 0;
  /// Collectives: "comm" for dispatch and combine, "dp" for the others, or the name that their
  /// group states. Weight gradients that run apart: "wgrad". Empty otherwise.
  std::string name;

  friend bool operator==(const Stream&, const Stream&) = default;
};

/// An edge with the two tasks that it joins.
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
  /// The task of each vertex. A fused group maps to its first member, the meeting point of a
  /// collective to the first member that meets there.
  std::vector<TaskId> task_of;
  DependencyGraph edges;
  /// The edges at composites and fused groups that belong to one member and not to all (see
  /// of_all()), in the order in which they were added.
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
  /// Calls visit(TaskEdge) for each edge. Edges of single members come last; an edge for all
  /// members of a composite or fused group names the first.
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
  /// Whether the vertex belongs to no task and is the point where the members of a collective meet.
  [[nodiscard]] bool is_meeting(Vertex vertex) const {
    const Vertex first = tasks[task_of[vertex]].start;
    return vertex > first + 1;
  }
};

/// A transfer or collective of a task graph that does not fit. Whoever builds the graph finds it;
/// the rules about transfers put it into words.
struct TransferFault {
  enum class Kind : std::uint8_t {
    Repeated,        ///< it is issued a second time; `other` is the first
    Nowhere,         ///< no rank, or this very rank, holds the stage at the other end
    SendWithout,     ///< no rank receives it
    ReceiveWithout,  ///< no rank sends it
    NotReceived,   ///< no rank receives the input of this computation; `other` is its send, if any
    SendTooEarly,  ///< it is issued before `other`, which makes the tensor that it sends
    ReceiveTooLate,     ///< it is issued behind `other`, which reads the tensor that it receives
    OtherCommunicator,  ///< its send `other` is made on another communicator
    Mismatch,  ///< NCCL pairs this receive with the send `other`, which carries another message
    CollectiveOrder,  ///< another member of its group performs `other` at this point, or nothing
  };

  Kind kind = Kind::Repeated;
  TaskId task = kNoTask;
  TaskId other = kNoTask;
  std::uint32_t group = 0;  ///< the declared group of a collective
};

/// The step that became the task. Precondition: the graph was made of `lowered`.
[[nodiscard]] inline const Step& step_of(const Lowered& lowered, const Task& task) {
  return lowered.ranks[task.rank.index()][task.step];
}

}  // namespace capo
