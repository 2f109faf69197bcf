// The part of meetings.h that looks for races. It stands apart since Boost's topological sort
// throws, and the rest of what decides a verdict is measured without exceptions
// (core/CMakeLists.txt).

#include "core/graph/meetings.h"

#include <boost/graph/topological_sort.hpp>

#include <algorithm>
#include <iterator>
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
    const auto [first, last] = boost::out_edges(from, graph.edges);
    for (auto edge = first; edge != last; ++edge) {
      TaskId& of_target = clock[boost::target(*edge, graph.edges)];
      of_target = std::max(of_target, after);
    }
  }
  return clock;
}

class Races {
 public:
  explicit Races(const TaskGraph& graph) : graph_(graph) {
    boost::topological_sort(graph.edges, std::back_inserter(order_));
    std::reverse(order_.begin(), order_.end());
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
