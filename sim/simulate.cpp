#include <capo/sim/simulate.h>

#include <capo/core/base/assert.h>

#include <algorithm>

namespace capo {

Timeline run_freely(const Subject& subject, const Durations& durations) {
  const TaskGraph& graph = subject.graph;
  const auto vertices = static_cast<Vertex>(graph.task_of.size());
  Timeline timeline{.begin = std::vector<double>(vertices, 0),
                    .done = std::vector<double>(vertices, 0),
                    .bound_by = std::vector<Vertex>(vertices, kNoVertex)};
  std::vector<std::uint32_t> waits_for(vertices, 0);
  for (Vertex from = 0; from < vertices; ++from) {
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) ++waits_for[boost::target(*edge, graph.edges)];
  }
  std::vector<Vertex> ready;
  for (Vertex vertex = 0; vertex < vertices; ++vertex) {
    if (waits_for[vertex] == 0) ready.push_back(vertex);
  }
  std::size_t ran = 0;
  while (!ready.empty()) {
    const Vertex from = ready.back();
    ready.pop_back();
    ++ran;
    const double done = timeline.begin[from] + durations.of(from);
    timeline.done[from] = done;
    timeline.makespan = std::max(timeline.makespan, done);
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) {
      const Vertex to = boost::target(*edge, graph.edges);
      const double there = done + durations.lag(graph.edges[*edge], from, to);
      // Of equals the lower vertex, so that the order of the visits does not show.
      double& begin = timeline.begin[to];
      Vertex& bound = timeline.bound_by[to];
      if (bound == kNoVertex || there > begin || (there == begin && from < bound)) bound = from;
      begin = std::max(begin, there);
      if (--waits_for[to] == 0) ready.push_back(to);
    }
  }
  CAPO_ASSERT(ran == vertices, "only what finishes is simulated");
  return timeline;
}

Timeline simulate(const Subject& subject, const Costs& costs) {
  const Durations durations(subject, costs);
  const bool shared = costs.slowdown != 1 || !costs.devices.empty();
  return shared ? run_shared(subject, durations, costs) : run_freely(subject, durations);
}

}  // namespace capo
