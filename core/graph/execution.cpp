#include <capo/core/graph/execution.h>

#include <capo/core/base/assert.h>
#include <capo/core/graph/transfer_pairing.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace capo {

namespace {

// Calls visit(target, kind) for every edge out of `from`.
template <typename Visit>
void for_each_edge(const TaskGraph& graph, Vertex from, Visit visit) {
  const auto [first, last] = boost::out_edges(from, graph.edges);
  for (auto edge = first; edge != last; ++edge) {
    visit(boost::target(*edge, graph.edges), graph.edges[*edge]);
  }
}

bool rides(EdgeKind kind) {
  return kind == EdgeKind::Stream || kind == EdgeKind::Queue;
}

// Shortest cycles through one vertex after another, in the stuck part of the graph. A search goes
// along dependencies. It can stand at a vertex, or pass a task on the way along its stream: that
// way has been paid for and may end anywhere. A fused group is one vertex on several streams, so
// the way belongs to a task and not to a vertex.
class CycleSearch {
 public:
  CycleSearch(const TaskGraph& graph, const Execution& execution, std::uint64_t max_work)
      : graph_(graph),
        execution_(execution),
        work_left_(max_work),
        seen_(graph.task_of.size() + graph.tasks.size() * 2, 0),
        from_(seen_.size()) {}

  std::vector<WaitEdge> run() {
    const auto known = vertex_on_a_cycle();
    if (!known) return {};
    for (const Vertex root : first_stuck_tasks()) {
      if (work_left_ > 0) search(root);
    }
    if (best_.empty()) search(*known);
    for (Vertex root = 0; root < graph_.task_of.size() && work_left_ > 0; ++root) {
      if (!execution_.ran[root]) search(root);
    }
    for (std::size_t i = 0; i < best_.size(); ++i) {
      best_[i].waited = waited_for(best_[i], best_[(i + 1) % best_.size()].task);
    }
    return std::move(best_);
  }

 private:
  using State = std::uint32_t;
  static constexpr State kNoState = 0xffffffff;

  struct Came {
    State state = kNoState;  // the one before; kNoState: the search began here
    std::uint32_t distance = 0;
    EdgeKind kind = EdgeKind::Stream;
  };

  // States: first standing at each vertex, then passing each task's start and end.
  [[nodiscard]] static State standing(Vertex vertex) { return vertex; }
  [[nodiscard]] State passing(TaskId task, Vertex at) const {
    const auto vertices = static_cast<State>(graph_.task_of.size());
    return vertices + task * 2 + (at == graph_.start(task) ? 0 : 1);
  }
  [[nodiscard]] bool is_passing(State state) const { return state >= graph_.task_of.size(); }
  [[nodiscard]] TaskId passed(State state) const {
    return static_cast<TaskId>((state - graph_.task_of.size()) / 2);
  }
  [[nodiscard]] Vertex vertex_of(State state) const {
    if (!is_passing(state)) return state;
    const bool at_start = (state - graph_.task_of.size()) % 2 == 0;
    return at_start ? graph_.start(passed(state)) : graph_.end(passed(state));
  }

  // From each stuck vertex back to one that it waits for, until a vertex comes again. Nothing if
  // all of these ways end at what waits for something that nobody makes.
  [[nodiscard]] std::optional<Vertex> vertex_on_a_cycle() const {
    const auto vertices = static_cast<Vertex>(graph_.task_of.size());
    constexpr Vertex kNone = 0xffffffff;
    std::vector<Vertex> waits_for(vertices, kNone);
    for (Vertex from = 0; from < vertices; ++from) {
      if (execution_.ran[from]) continue;
      for_each_edge(graph_, from, [&](Vertex to, EdgeKind) { waits_for[to] = from; });
    }
    std::vector<Vertex> walked_by(vertices, kNone);
    for (Vertex begin = 0; begin < vertices; ++begin) {
      if (execution_.ran[begin]) continue;
      Vertex at = begin;
      while (at != kNone && walked_by[at] == kNone) {
        walked_by[at] = begin;
        at = waits_for[at];
      }
      if (at != kNone && walked_by[at] == begin) return at;
    }
    return std::nullopt;
  }

  std::vector<Vertex> first_stuck_tasks() const {
    std::vector<bool> found(graph_.streams.size(), false);
    std::vector<Vertex> roots;
    for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
      const Task& task = graph_.tasks[id];
      if (execution_.ran[graph_.end(id)] || found[task.stream]) continue;
      found[task.stream] = true;
      roots.push_back(graph_.end(id));
    }
    return roots;
  }

  // Breadth first with steps of cost 0 and 1, no deeper than what is known already.
  void search(Vertex root) {
    ++round_;
    root_ = root;
    closed_ = false;
    open_.clear();
    reach(standing(root), {});
    while (!open_.empty() && !closed_) {
      const State state = open_.front();
      open_.pop_front();
      if (!best_.empty() && from_[state].distance >= best_.size()) return;
      // What waits for what did not run did not run either.
      for_each_edge(graph_, vertex_of(state), [&](Vertex to, EdgeKind kind) {
        if (work_left_ > 0) --work_left_;
        step(state, to, kind);
      });
    }
  }

  void step(State state, Vertex to, EdgeKind kind) {
    const bool on_the_way = is_passing(state);
    if (kind == EdgeKind::Span) {
      // Within a task nothing is waited for.
      go(on_the_way ? passing(passed(state), to) : standing(to), state, 0, kind, to);
    } else if (!rides(kind)) {
      // Two members of a collective are one step apart, not two.
      const bool meeting = kind == EdgeKind::Collective && graph_.is_meeting(to);
      go(standing(to), state, meeting ? 0 : 1, kind, to);
    } else {
      graph_.for_each_task(to, [&](TaskId next) {
        const std::uint32_t stream = graph_.tasks[next].stream;
        const bool same_way = on_the_way && graph_.tasks[passed(state)].stream == stream;
        if (same_way || on_stream(vertex_of(state), stream))
          go(passing(next, to), state, same_way ? 0 : 1, kind, to);
      });
    }
  }

  [[nodiscard]] bool on_stream(Vertex vertex, std::uint32_t stream) const {
    bool found = false;
    graph_.for_each_task(
        vertex, [&](TaskId task) { found = found || graph_.tasks[task].stream == stream; });
    return found;
  }

  void go(State state, State before, std::uint32_t cost, EdgeKind kind, Vertex to) {
    const std::uint32_t distance = from_[before].distance + cost;
    if (to == root_) {
      if (!best_.empty() && distance >= best_.size()) return;
      closed_ = true;
      best_ = cycle_through(before, kind, is_passing(state) ? passed(state) : kNoTask);
      return;
    }
    reach(state, {.state = before, .distance = distance, .kind = kind});
  }

  void reach(State state, Came came) {
    if (seen_[state] == round_ && from_[state].distance <= came.distance) return;
    const bool free = came.state != kNoState && from_[came.state].distance == came.distance;
    seen_[state] = round_;
    from_[state] = came;
    if (free) {
      open_.push_front(state);
    } else {
      open_.push_back(state);
    }
  }

  // From the root along dependencies to `last`, and by an edge of kind `closing` back to the root,
  // where that is a way along a stream to its task `arrived`: the same the other way round, as
  // tasks that wait.
  [[nodiscard]] std::vector<WaitEdge> cycle_through(State last, EdgeKind closing,
                                                    TaskId arrived) const {
    std::vector<WaitEdge> waits;
    Vertex waiting = root_;
    TaskId waiting_task = arrived;
    EdgeKind kind = closing;
    std::optional<std::uint32_t> ridden;  // the stream along which the wait added last goes
    for (State state = last; state != kNoState; state = from_[state].state) {
      const Vertex waited = vertex_of(state);
      // Members of a collective wait for each other, not for the point where they meet.
      if (!graph_.is_meeting(waited)) {
        if (rides(kind)) {
          const std::uint32_t stream = graph_.tasks[waiting_task].stream;
          if (ridden != stream) waits.push_back({.task = waiting_task, .kind = kind});
          ridden = stream;
        } else if (kind != EdgeKind::Span) {
          waits.push_back({.task = member(waiting, waited, kind), .kind = kind});
          ridden.reset();
        }
        waiting = waited;
      }
      waiting_task = is_passing(state) ? passed(state) : kNoTask;
      kind = from_[state].kind;
    }
    return waits;
  }

  // Of a fused group or composite, the member that waits.
  [[nodiscard]] TaskId member(Vertex waiting, Vertex waited, EdgeKind kind) const {
    const TaskId found = first_of(waiting, [&](TaskId task, Sure sure) {
      const auto is_for = [&](TaskId other, Sure) { return waits_for(task, other, kind, sure); };
      return first_of(waited, is_for) != kNoTask;
    });
    CAPO_ASSERT(found != kNoTask, "a vertex waits because a task of its own does");
    return found;
  }

  // Of `next` and the others of its group, the one that the wait is for.
  [[nodiscard]] TaskId waited_for(const WaitEdge& wait, TaskId next) const {
    const auto is_for = [&](TaskId task, Sure sure) {
      return waits_for(wait.task, task, wait.kind, sure);
    };
    if (is_for(next, Sure::Yes)) return next;
    const TaskId found = first_of(graph_.start(next), is_for);
    CAPO_ASSERT(found != kNoTask, "what a task waits for is a task");
    return found;
  }

  // Messages meet in the order of issue, so that two may meet whose names differ (T08); of a group
  // those are taken only where none agrees.
  enum class Sure : std::uint8_t { Yes, No };

  // The first task of a vertex that `fits` for sure, else the first that may.
  template <typename Fits>
  [[nodiscard]] TaskId first_of(Vertex vertex, Fits fits) const {
    TaskId found = kNoTask;
    for (const Sure sure : {Sure::Yes, Sure::No}) {
      graph_.for_each_task(vertex, [&](TaskId task) {
        if (found == kNoTask && fits(task, sure)) found = task;
      });
    }
    return found;
  }

  // Of two whose vertices are joined by an edge of this kind, or by a way along a stream.
  [[nodiscard]] bool waits_for(TaskId waiting, TaskId other, EdgeKind kind, Sure sure) const {
    const Task& of = graph_.tasks[waiting];
    const Task& to = graph_.tasks[other];
    const auto meet = [sure](const Task& receive, const Task& send) {
      return is_receive(receive.kind) && is_send(send.kind) &&
             (sure == Sure::No || message_of(receive) == message_of(send));
    };
    switch (kind) {
      case EdgeKind::Message:
        return meet(of, to);
      case EdgeKind::Rendezvous:
        return meet(to, of);
      case EdgeKind::Data:
        return reads(of, to);
      default:
        return !rides(kind) || of.stream == to.stream;
    }
  }

  // Whether one reads what the other makes, of two whose vertices are joined by data (build.cpp).
  [[nodiscard]] static bool reads(const Task& reader, const Task& maker) {
    if (reader.microbatch != maker.microbatch || is_receive(reader.kind)) return false;
    const bool forward = goes_forward(reader.kind);
    const bool alike = forward == goes_forward(maker.kind);
    if (reader.stage != maker.stage) {
      const std::int32_t before = forward ? reader.stage - 1 : reader.stage + 1;
      return alike && maker.stage == before && !is_send(reader.kind);
    }
    if (reader.kind == Kind::BackwardWeight) return is_backward(maker.kind);
    // What was received or is sent goes its reader's or maker's way; what a stage reads of its own
    // is the forward.
    return is_transfer(maker.kind) || is_send(reader.kind) ? alike : !forward;
  }

  [[nodiscard]] static bool goes_forward(Kind kind) {
    return kind == Kind::Forward || kind == Kind::SendForward || kind == Kind::ReceiveForward ||
           kind == Kind::DispatchForward || kind == Kind::CombineForward;
  }

  const TaskGraph& graph_;
  const Execution& execution_;
  std::uint64_t work_left_;
  std::uint32_t round_ = 0;
  Vertex root_ = 0;
  bool closed_ = false;
  std::vector<std::uint32_t> seen_;  // by state: the search that reached it
  std::vector<Came> from_;
  std::deque<State> open_;
  std::vector<WaitEdge> best_;
};

}  // namespace

Execution execute(const TaskGraph& graph) {
  const std::size_t vertices = graph.task_of.size();
  std::vector<std::uint32_t> waits_for(vertices, 0);
  for (Vertex from = 0; from < vertices; ++from) {
    for_each_edge(graph, from, [&](Vertex to, EdgeKind) { ++waits_for[to]; });
  }
  for (const Task& task : graph.tasks) {
    if (task.never) ++waits_for[task.start];
  }
  std::vector<Vertex> ready;
  for (Vertex vertex = 0; vertex < vertices; ++vertex) {
    if (waits_for[vertex] == 0) ready.push_back(vertex);
  }
  Execution execution{.ran = std::vector<bool>(vertices, false), .stuck = vertices};
  while (!ready.empty()) {
    const Vertex vertex = ready.back();
    ready.pop_back();
    execution.ran[vertex] = true;
    --execution.stuck;
    for_each_edge(graph, vertex, [&](Vertex to, EdgeKind) {
      if (--waits_for[to] == 0) ready.push_back(to);
    });
  }
  return execution;
}

std::vector<WaitEdge> shortest_cycle(const TaskGraph& graph, const Execution& execution,
                                     std::uint64_t max_work) {
  if (execution.finishes()) return {};
  return CycleSearch(graph, execution, max_work).run();
}

}  // namespace capo
