// The part of meetings.h that looks for races.

#include "core/base/assert.h"
#include "core/graph/meetings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace capo {

namespace {

constexpr TaskId kBeforeAll = 0;  // clocks count tasks from 1

// Returns for each vertex how many tasks of `stream` are over before it starts.
std::vector<TaskId> clock_of(const TaskGraph& graph, const std::vector<Vertex>& order,
                             std::uint32_t stream) {
  std::vector<TaskId> ended_at(graph.task_of.size(), kBeforeAll);  // by vertex, the count it adds
  TaskId count = 0;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (graph.tasks[id].stream == stream) ended_at[graph.end(id)] = ++count;
  }
  std::vector<TaskId> clock(graph.task_of.size(), kBeforeAll);
  for (const Vertex from : order) {
    const TaskId after = std::max(clock[from], ended_at[from]);
    graph.edges.for_each_out(from,
                             [&](Vertex to, EdgeKind) { clock[to] = std::max(clock[to], after); });
  }
  return clock;
}

// Returns all vertices, each behind those that it waits for.
std::vector<Vertex> order_of(const TaskGraph& graph) {
  const auto vertices = static_cast<Vertex>(graph.task_of.size());
  std::vector<std::uint32_t> waits_for(vertices, 0);
  for (Vertex from = 0; from < vertices; ++from)
    graph.edges.for_each_out(from, [&](Vertex to, EdgeKind) { ++waits_for[to]; });
  std::vector<Vertex> order;
  for (Vertex vertex = 0; vertex < vertices; ++vertex) {
    if (waits_for[vertex] == 0) order.push_back(vertex);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    graph.edges.for_each_out(order[at], [&](Vertex to, EdgeKind) {
      if (--waits_for[to] == 0) order.push_back(to);
    });
  }
  CAPO_ASSERT(order.size() == vertices, "races are looked for in what finishes");
  return order;
}

class Races {
 public:
  explicit Races(const TaskGraph& graph) : graph_(graph), order_(order_of(graph)) {
    positions_.resize(graph.tasks.size());
    std::vector<TaskId> count(graph.streams.size(), kBeforeAll);
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      positions_[id] = ++count[graph.tasks[id].stream];
    }
  }

  // Whether `earlier` is over before `later` starts, whatever the streams do.
  [[nodiscard]] bool ordered(TaskId earlier, TaskId later) {
    const std::uint32_t stream = graph_.tasks[earlier].stream;
    if (stream == graph_.tasks[later].stream) return true;
    std::vector<TaskId>& clock = clocks_[stream];
    if (clock.empty()) clock = clock_of(graph_, order_, stream);
    return clock[graph_.start(later)] >= positions_[earlier];
  }

 private:
  const TaskGraph& graph_;
  std::vector<Vertex> order_;
  std::vector<TaskId> positions_;  // of each task on its stream, from 1
  std::map<std::uint32_t, std::vector<TaskId>> clocks_;
};

// Returns two of the group's collectives on one rank, one issued right behind the other, that
// nothing orders.
std::optional<std::pair<TaskId, TaskId>> first_race(const TaskGraph& graph, Races& races,
                                                    const CollectiveGroup& group, RankId rank) {
  TaskId earlier = kNoTask;
  for (const TaskId id : collectives_of(graph, group, rank)) {
    if (earlier != kNoTask && !races.ordered(earlier, id)) return std::pair(earlier, id);
    earlier = id;
  }
  return std::nullopt;
}

}  // namespace

std::vector<CollectiveRace> collective_races(const TaskGraph& graph,
                                             std::span<const CollectiveGroup> groups) {
  std::vector<CollectiveRace> found;
  Races races(graph);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (groups[g].members.size() < 2) continue;
    for (const std::int32_t rank : groups[g].members) {
      const auto race = first_race(graph, races, groups[g], rank);
      if (!race) continue;
      found.push_back({.group = g, .earlier = race->first, .later = race->second});
      break;
    }
  }
  return found;
}

}  // namespace capo
