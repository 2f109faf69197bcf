#include "sim/simulate.h"

#include "core/base/assert.h"
#include "core/graph/execution.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace capo {

namespace {

// Memory is asked for a few turns before it is needed: with ten million tasks nothing of a graph is
// in a cache.
constexpr std::size_t kAhead = 8;

// Runs each vertex as soon as it can, and if the one behind it can run then, that one next: it lies
// beside it in memory.
class FreeRun {
 public:
  FreeRun(const TaskGraph& graph, const Durations& durations)
      : graph_(graph), durations_(durations), times_(graph.task_of.size()), waits_(graph.edges) {}

  // nullopt if tasks wait for each other.
  std::optional<TaskTimes> run() {
    const auto vertices = static_cast<Vertex>(times_.at.size());
    for (Vertex vertex = 0; vertex < vertices; ++vertex) {
      times_.at[vertex].done = durations_.of(vertex);  // until it has run
      if (waits_.none(vertex)) ready_.push_back(vertex);
    }
    std::size_t ran = 0;
    while (!ready_.empty()) {
      Vertex at = ready_.front();
      ready_.pop_front();
      if (kAhead < ready_.size()) fetch_targets(ready_[kAhead]);
      for (++ran; frees_next(at); ++ran) ++at;
    }
    if (ran < vertices) return std::nullopt;
    return std::move(times_);
  }

 private:
  void fetch_targets(Vertex of) const {
    graph_.edges.for_each_out(of, [&](Vertex to, EdgeKind) { __builtin_prefetch(&times_.at[to]); });
  }

  // Runs a vertex. Whether the next one can run then; others that can are ready.
  bool frees_next(Vertex from) {
    times_.at[from].done += times_.at[from].begin;
    const double done = times_.at[from].done;
    times_.makespan = std::max(times_.makespan, done);
    bool next = false;
    graph_.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
      times_.bind(to, from, done + durations_.lag(kind, from, to));
      if (!waits_.take_last(to)) return;
      if (to == from + 1) {
        next = true;
      } else {
        ready_.push_back(to);
      }
    });
    return next;
  }

  const TaskGraph& graph_;
  const Durations& durations_;
  TaskTimes times_;
  WaitCounts waits_;
  std::deque<Vertex> ready_;  // in the order of their turn
};

bool shares_devices(const Costs& costs) {
  return costs.slowdown != 1 || costs.crowded != 1 || costs.ahead > 0 || !costs.devices.empty();
}

}  // namespace

TaskTimes run_freely(const Subject& subject, const Durations& durations) {
  std::optional<TaskTimes> times = FreeRun(subject.graph, durations).run();
  CAPO_ASSERT(times.has_value(), "only what finishes is simulated");
  return *std::move(times);
}

TaskTimes simulate(const Subject& subject, const Costs& costs) {
  const Durations durations(subject, costs);
  return shares_devices(costs) ? run_shared(subject, durations, costs)
                               : run_freely(subject, durations);
}

std::optional<TaskTimes> simulate_if_it_finishes(const Subject& subject, const Costs& costs) {
  // A transfer to nowhere takes no time that could be told.
  const bool all_take_times = subject.links == Links::Ideal && !shares_devices(costs);
  if (!all_take_times) {
    if (!execute(subject.graph).finishes()) return std::nullopt;
    return simulate(subject, costs);
  }
  const TaskList& tasks = subject.graph.tasks;
  if (std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.never; }))
    return std::nullopt;
  const Durations durations(subject, costs);
  return FreeRun(subject.graph, durations).run();
}

}  // namespace capo
