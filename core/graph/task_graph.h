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
// A task takes 13 bytes, and 4 more each for its vertex, the task of a vertex and its step, but
// only in a graph in which one of these is not simply the next number. An edge that needs to be
// told which members of a composite or fused group it is between takes 20 bytes beside those of
// dependency_graph.h. Tested by task_graph_test.cpp; bench/graph prints time and bytes a task.

#pragma once

#include "core/graph/dependency_graph.h"
#include "core/graph/lowered.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace capo {

using TaskId = std::uint32_t;
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

  friend bool operator==(const Task&, const Task&) = default;
};

/// A list of numbers of which each is mostly its own position: while all are, only how many there
/// are is kept.
class Numbering {
 public:
  void reserve(std::size_t most) { most_ = most; }
  void push_back(std::uint32_t number) {
    if (all_in_place_ && number != size_) list();
    if (!all_in_place_) numbers_.push_back(number);
    ++size_;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint32_t operator[](std::size_t at) const {
    return all_in_place_ ? static_cast<std::uint32_t>(at) : numbers_[at];
  }

 private:
  void list() {
    all_in_place_ = false;
    numbers_.reserve(most_);
    numbers_.resize(size_);
    std::iota(numbers_.begin(), numbers_.end(), 0U);
  }

  std::size_t size_ = 0;
  std::size_t most_ = 0;
  bool all_in_place_ = true;
  std::vector<std::uint32_t> numbers_;
};

/// Tasks, of which only that is kept which does not follow from the others. A task is made when it
/// is asked for: always in place, so that nothing is fetched but what is read of it.
class TaskList {
 public:
  using Iterator = MadeIterator<TaskList, Task>;

  void reserve(std::size_t tasks) {
    kept_.reserve(tasks);
    forms_.reserve(tasks);
    starts_.reserve(tasks);
    steps_.reserve(tasks);
  }
  /// Precondition: it is of the rank of the one before, or of another that has no tasks yet, and
  /// those of one stream are of one rank.
  void push_back(const Task& task) {
    const std::size_t rank = task.rank.index();
    if (first_of_.size() <= rank) first_of_.resize(rank + 1, kNoTask);
    if (first_of_[rank] == kNoTask) first_of_[rank] = static_cast<TaskId>(size());
    if (rank_of_.size() <= task.stream) rank_of_.resize(task.stream + std::size_t{1});
    rank_of_[task.stream] = task.rank;
    starts_.push_back(task.start);
    steps_.push_back(first_of_[rank] + task.step);
    kept_.push_back({task.stage, task.microbatch, task.stream});
    Form& form = forms_.emplace_back();
    form.kind = task.kind;
    form.split = task.split;
    form.never = task.never;
    form.member = task.member;
  }
  void set_never(TaskId task) { forms_[task].never = true; }
  void set_member(TaskId task) { forms_[task].member = true; }

  [[nodiscard]] std::size_t size() const { return kept_.size(); }
  [[nodiscard, gnu::always_inline]] Task operator[](std::size_t id) const {
    const Kept& kept = kept_[id];
    const Form form = forms_[id];
    const RankId rank = rank_of_[kept.stream];
    return {.rank = rank,
            .stage = kept.stage,
            .microbatch = kept.microbatch,
            .step = steps_[id] - first_of_[rank.index()],
            .stream = kept.stream,
            .start = starts_[id],
            .kind = form.kind,
            .split = form.split,
            .never = form.never,
            .member = form.member};
  }
  [[nodiscard]] Task back() const { return (*this)[size() - 1]; }
  [[nodiscard]] Vertex start(TaskId task) const { return starts_[task]; }
  [[nodiscard]] bool is_member(TaskId task) const { return forms_[task].member; }
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }

 private:
  struct Kept {
    StageId stage;
    MicrobatchId microbatch;
    std::uint32_t stream;
  };
  struct Form {
    Kind kind : 5 = Kind::Idle;
    bool split : 1 = false;
    bool never : 1 = false;
    bool member : 1 = false;
  };
  static_assert(sizeof(Kept) == 12 && sizeof(Form) == 1);

  std::vector<Kept> kept_;
  std::vector<Form> forms_;
  Numbering starts_;
  Numbering steps_;               // counted from the first task of all
  std::vector<TaskId> first_of_;  // by rank; kNoTask: it has none
  std::vector<RankId> rank_of_;   // by stream
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
  TaskList tasks;                ///< rank by rank, in the order of issue
  std::vector<TaskId> first_of;  ///< the first task of each rank, and one past the last of all
  std::vector<Stream> streams;
  /// The task of each vertex. A fused group maps to its first member, the meeting point of a
  /// collective to the first member that meets there.
  Numbering task_of;
  DependencyGraph edges;
  /// The edges at composites and fused groups that belong to one member and not to all (see
  /// of_all()), in the order in which they were added.
  std::vector<TaskEdge> member_edges;

  [[nodiscard]] Vertex start(TaskId task) const { return tasks.start(task); }
  [[nodiscard]] Vertex end(TaskId task) const {
    return tasks.start(task) + (tasks[task].split ? 1 : 0);
  }
  /// Calls visit(task) for each task of a vertex: one, or the members of a composite or fused
  /// group.
  template <typename Visit>
  void for_each_task(Vertex vertex, Visit visit) const {
    const Vertex first = start(task_of[vertex]);
    for (TaskId task = task_of[vertex]; task < tasks.size() && start(task) == first; ++task) {
      visit(task);
    }
  }
  /// Calls visit(TaskEdge) for each edge. Edges of single members come last; an edge for all
  /// members of a composite or fused group names the first.
  template <typename Visit>
  void for_each_task_edge(Visit visit) const {
    for (Vertex from = 0; from < task_of.size(); ++from) {
      edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
        const TaskEdge found{from, to, kind, task_of[from], task_of[to]};
        const bool at_member = tasks.is_member(found.before) || tasks.is_member(found.after);
        if (!at_member || of_all(found.kind)) visit(found);
      });
    }
    for (const TaskEdge& edge : member_edges) visit(edge);
  }
  /// Whether an edge of this kind is for all members of a composite or fused group.
  [[nodiscard]] static bool of_all(EdgeKind kind) {
    return kind == EdgeKind::Stream || kind == EdgeKind::Queue || kind == EdgeKind::Issue ||
           kind == EdgeKind::Span;
  }
  /// Whether the vertex belongs to no task and is the point where the members of a collective meet.
  [[nodiscard]] bool is_meeting(Vertex vertex) const { return vertex > start(task_of[vertex]) + 1; }
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
[[nodiscard, gnu::always_inline]] inline Step step_of(const Lowered& lowered, const Task& task) {
  return lowered.ranks[task.rank.index()][task.step];
}

}  // namespace capo
