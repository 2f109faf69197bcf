#include "sim/simulate.h"

#include "core/base/assert.h"

#include <algorithm>

namespace capo {

namespace {

// A node holds side by side all that one visit of a vertex needs, since half of the time goes into
// fetching it.
struct Node {
  double begin = 0;
  double duration = 0;
  Vertex bound_by = kNoVertex;
  std::uint32_t waits_for = 0;
};

// Memory is asked for a few turns before it is needed: with ten million tasks nothing of a graph is
// in a cache (a tenth of the time, bench/simulate).
constexpr std::size_t kAhead = 8;

void fetch_first_target(const TaskGraph& graph, Vertex of, const std::vector<Node>& nodes) {
  const auto [first, last] = boost::out_edges(of, graph.edges);
  if (first != last) __builtin_prefetch(&nodes[boost::target(*first, graph.edges)]);
}

}  // namespace

TaskTimes run_freely(const Subject& subject, const Durations& durations) {
  const TaskGraph& graph = subject.graph;
  const auto vertices = static_cast<Vertex>(graph.task_of.size());
  std::vector<Node> nodes(vertices);
  for (Vertex from = 0; from < vertices; ++from) {
    nodes[from].duration = durations.of(from);
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) {
      ++nodes[boost::target(*edge, graph.edges)].waits_for;
    }
  }
  std::vector<Vertex> ready;  // in the order of their turn, those that had it included
  ready.reserve(vertices);
  for (Vertex vertex = 0; vertex < vertices; ++vertex) {
    if (nodes[vertex].waits_for == 0) ready.push_back(vertex);
  }
  for (std::size_t ran = 0; ran < ready.size(); ++ran) {
    const Vertex from = ready[ran];
    if (ran + kAhead < ready.size()) fetch_first_target(graph, ready[ran + kAhead], nodes);
    const double done = nodes[from].begin + nodes[from].duration;
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) {
      const Vertex to = boost::target(*edge, graph.edges);
      const double there = done + durations.lag(graph.edges[*edge], from, to);
      Node& node = nodes[to];
      // The lower of two equal vertices counts, so that the order of the visits does not show.
      const bool later = there > node.begin || (there == node.begin && from < node.bound_by);
      if (later) node.bound_by = from;
      node.begin = std::max(node.begin, there);
      if (--node.waits_for == 0) ready.push_back(to);
    }
  }
  CAPO_ASSERT(ready.size() == vertices, "only what finishes is simulated");

  TaskTimes times;
  times.begin.reserve(vertices);
  times.done.reserve(vertices);
  times.bound_by.reserve(vertices);
  for (Vertex vertex = 0; vertex < vertices; ++vertex) {
    times.begin.push_back(nodes[vertex].begin);
    times.done.push_back(nodes[vertex].begin + nodes[vertex].duration);
    times.bound_by.push_back(nodes[vertex].bound_by);
    times.makespan = std::max(times.makespan, times.done.back());
  }
  return times;
}

TaskTimes simulate(const Subject& subject, const Costs& costs) {
  const Durations durations(subject, costs);
  const bool shared = costs.slowdown != 1 || !costs.devices.empty();
  return shared ? run_shared(subject, durations, costs) : run_freely(subject, durations);
}

}  // namespace capo
