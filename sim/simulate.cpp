#include "sim/simulate.h"

#include "core/base/assert.h"
#include "core/graph/execution.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace capo {

namespace {

// Memory is asked for a few turns before it is needed: with ten million tasks nothing of a graph is
// in a cache (a tenth of the time, bench/simulate).
constexpr std::size_t kAhead = 8;

void fetch_first_target(const TaskGraph& graph, Vertex of, const std::vector<TaskTimes::At>& at) {
  const auto [first, last] = boost::out_edges(of, graph.edges);
  if (first != last) __builtin_prefetch(&at[boost::target(*first, graph.edges)]);
}

// nullopt if tasks wait for each other.
std::optional<TaskTimes> freely_if_it_finishes(const Subject& subject, const Durations& durations) {
  const TaskGraph& graph = subject.graph;
  const auto vertices = static_cast<Vertex>(graph.task_of.size());
  TaskTimes times;
  times.at.resize(vertices);
  for (Vertex from = 0; from < vertices; ++from) {
    times.at[from].done = durations.of(from);  // until it has run
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) {
      ++times.at[boost::target(*edge, graph.edges)].waits_for;
    }
  }
  std::deque<Vertex> ready;  // in the order of their turn
  for (Vertex vertex = 0; vertex < vertices; ++vertex) {
    if (times.at[vertex].waits_for == 0) ready.push_back(vertex);
  }
  std::size_t ran = 0;
  for (; !ready.empty(); ++ran) {
    const Vertex from = ready.front();
    ready.pop_front();
    if (kAhead < ready.size()) fetch_first_target(graph, ready[kAhead], times.at);
    times.at[from].done += times.at[from].begin;
    const double done = times.at[from].done;
    times.makespan = std::max(times.makespan, done);
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) {
      const Vertex to = boost::target(*edge, graph.edges);
      const double there = done + durations.lag(graph.edges[*edge], from, to);
      TaskTimes::At& next = times.at[to];
      // The lower of two equal vertices counts, so that the order of the visits does not show.
      const bool later = there > next.begin || (there == next.begin && from < next.bound_by);
      if (later) next.bound_by = from;
      next.begin = std::max(next.begin, there);
      if (--next.waits_for == 0) ready.push_back(to);
    }
  }
  if (ran < vertices) return std::nullopt;
  return times;
}

bool shares_devices(const Costs& costs) {
  return costs.slowdown != 1 || costs.crowded != 1 || costs.ahead > 0 || !costs.devices.empty();
}

}  // namespace

TaskTimes run_freely(const Subject& subject, const Durations& durations) {
  std::optional<TaskTimes> times = freely_if_it_finishes(subject, durations);
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
  const std::vector<Task>& tasks = subject.graph.tasks;
  if (std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.never; }))
    return std::nullopt;
  return freely_if_it_finishes(subject, Durations(subject, costs));
}

}  // namespace capo
