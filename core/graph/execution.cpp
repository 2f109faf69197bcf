#include "core/graph/execution.h"

#include "core/base/assert.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace capo {

namespace {

// Calls visit(target, kind) for every edge out of `from`.
template <typename Visit>
void for_each_edge(const TaskGraph& graph, Vertex from, Visit visit) {
  graph.edges.for_each_out(from, visit);
}

// Whether a task that waits for something that nobody makes waits for ever, or finds it there.
enum class Never : std::uint8_t { Waits, IsThere };

Execution execute(const TaskGraph& graph, Never never) {
  const std::size_t vertices = graph.task_of.size();
  std::vector<std::uint32_t> waits_for(vertices, 0);
  for (Vertex from = 0; from < vertices; ++from) {
    for_each_edge(graph, from, [&](Vertex to, EdgeKind) { ++waits_for[to]; });
  }
  for (const Task& task : graph.tasks) {
    if (task.never && never == Never::Waits) ++waits_for[task.start];
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
      if (!execution_.ran[root] && !graph_.is_meeting(root)) search(root);
    }
    return named();
  }

 private:
  using State = std::uint32_t;
  static constexpr State kNoState = 0xffffffff;

  struct Came {
    State state = kNoState;  // the state before; kNoState: the search began here
    std::uint32_t distance = 0;
    EdgeKind kind = EdgeKind::Stream;
  };

  // A step of a cycle by vertices. Members of a collective wait for each other, not for the point
  // where they meet.
  struct Wait {
    Vertex waiting;
    Vertex waited;
    std::optional<Vertex> meeting;  // the point between the two; nullopt: they do not meet
    TaskId rider = kNoTask;         // the task that waits along its stream
    EdgeKind kind;
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

  // Imagine that everything that nobody makes were there. A task that would still not run waits for
  // another such task, so going from one to the next comes around. The meeting point of a
  // collective waits for one of these.
  [[nodiscard]] std::optional<Vertex> vertex_on_a_cycle() const {
    const Execution given = execute(graph_, Never::IsThere);
    if (given.finishes()) return std::nullopt;
    const auto vertices = static_cast<Vertex>(graph_.task_of.size());
    std::vector<Vertex> waits_for(vertices, 0);
    Vertex at = 0;
    for (Vertex from = 0; from < vertices; ++from) {
      if (given.ran[from]) continue;
      at = from;
      for_each_edge(graph_, from, [&](Vertex to, EdgeKind) { waits_for[to] = from; });
    }
    for (Vertex steps = 0; steps < vertices; ++steps) at = waits_for[at];
    return graph_.is_meeting(at) ? waits_for[at] : at;
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

  // Searches breadth first with steps of cost 0 and 1, no deeper than the best cycle so far.
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
      // A task behind one that did not run did not run either.
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

  // The path goes from the root along dependencies to `last`, and by an edge of kind `closing` back
  // to the root; if that edge goes along a stream, it arrives at the root's task `arrived`. Returns
  // the path the other way round, as tasks that wait.
  [[nodiscard]] std::vector<Wait> cycle_through(State last, EdgeKind closing,
                                                TaskId arrived) const {
    std::vector<Wait> waits;
    Vertex waiting = root_;
    TaskId rider = arrived;
    EdgeKind kind = closing;
    std::optional<Vertex> meeting;
    std::optional<std::uint32_t> ridden;  // the stream of the latest wait; nullopt: not along one
    for (State state = last; state != kNoState; state = from_[state].state) {
      const Vertex waited = vertex_of(state);
      if (graph_.is_meeting(waited)) {
        meeting = waited;
      } else {
        if (rides(kind)) {
          const std::uint32_t stream = graph_.tasks[rider].stream;
          if (ridden != stream) waits.push_back({.waiting = waiting, .rider = rider, .kind = kind});
          waits.back().waited = waited;
          ridden = stream;
        } else if (kind != EdgeKind::Span) {
          waits.push_back({.waiting = waiting, .waited = waited, .meeting = meeting, .kind = kind});
          ridden.reset();
        }
        waiting = waited;
        meeting.reset();
      }
      rider = is_passing(state) ? passed(state) : kNoTask;
      kind = from_[state].kind;
    }
    return waits;
  }

  // Returns the best cycle by tasks. If several tasks share a vertex, an edge names its own two.
  [[nodiscard]] std::vector<WaitEdge> named() const {
    std::vector<WaitEdge> edges;
    for (const Wait& wait : best_) {
      edges.push_back({.task = graph_.task_of[wait.waiting],
                       .kind = wait.kind,
                       .waited = graph_.task_of[wait.waited]});
      if (!rides(wait.kind)) continue;
      edges.back().task = wait.rider;
      graph_.for_each_task(wait.waited, [&](TaskId task) {
        if (graph_.tasks[task].stream == graph_.tasks[wait.rider].stream)
          edges.back().waited = task;
      });
    }
    name_members(edges);
    // If several tasks share a stream, the one that waits in its turn is named.
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const TaskId next = edges[(i + 1) % edges.size()].task;
      if (rides(best_[i].kind) && graph_.tasks[next].stream == graph_.tasks[edges[i].task].stream)
        edges[i].waited = next;
    }
    return edges;
  }

  void name_members(std::vector<WaitEdge>& edges) const {
    std::multimap<Vertex, std::size_t> waits_at;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      waits_at.emplace(best_[i].waiting, i);
      waits_at.emplace(best_[i].waited, i);
    }
    // If several edges join the same two, the first is visited last and so wins.
    for (std::size_t at = graph_.member_edges.size(); at > 0; --at) {
      const TaskEdge& member = graph_.member_edges[at - 1];
      for (const Vertex end : {member.from, member.to}) {
        const auto [first, last] = waits_at.equal_range(end);
        for (auto wait = first; wait != last; ++wait) {
          name_by(member, best_[wait->second], edges[wait->second]);
        }
      }
    }
  }

  static void name_by(const TaskEdge& member, const Wait& wait, WaitEdge& edge) {
    if (member.kind != wait.kind) return;
    if (member.from == wait.waited && member.to == wait.meeting.value_or(wait.waiting))
      edge.waited = member.before;
    if (member.to == wait.waiting && member.from == wait.meeting.value_or(wait.waited))
      edge.task = member.after;
  }

  const TaskGraph& graph_;
  const Execution& execution_;
  std::uint64_t work_left_;
  std::uint32_t round_ = 0;
  Vertex root_ = 0;
  bool closed_ = false;
  std::vector<std::uint32_t> seen_;  // by state: the number of the search that reached it
  std::vector<Came> from_;
  std::deque<State> open_;
  std::vector<Wait> best_;
};

}  // namespace

Execution execute(const TaskGraph& graph) {
  return execute(graph, Never::Waits);
}

std::vector<WaitEdge> shortest_cycle(const TaskGraph& graph, const Execution& execution,
                                     std::uint64_t max_work) {
  if (execution.finishes()) return {};
  return CycleSearch(graph, execution, max_work).run();
}

TaskId first_stuck(const TaskGraph& graph, const Execution& execution) {
  TaskId first = kNoTask;
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    if (execution.ran[graph.end(task)]) continue;
    if (!is_compute(graph.tasks[task].kind)) return task;
    if (first == kNoTask) first = task;
  }
  return first;
}

std::vector<std::int32_t> ranks_of(const TaskGraph& graph, const std::vector<WaitEdge>& cycle) {
  std::set<std::int32_t> ranks;
  for (const WaitEdge& edge : cycle) ranks.insert(graph.tasks[edge.task].rank);
  return {ranks.begin(), ranks.end()};
}

}  // namespace capo
