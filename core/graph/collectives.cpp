#include "core/graph/collectives.h"

#include <algorithm>

namespace capo {

namespace {

bool performs(const CollectiveGroup& group, Kind kind) {
  return std::find(group.actions.begin(), group.actions.end(), kind) != group.actions.end();
}

bool same_collective(const Lowered& lowered, const Task& a, const Task& b) {
  const Step& x = step_of(lowered, a);
  const Step& y = step_of(lowered, b);
  return x.kind == y.kind && x.chunk == y.chunk && x.microbatch == y.microbatch &&
         x.layer == y.layer;
}

// The k-th of each member; a fault, and false, where they are not the same.
bool meet(const Lowered& lowered, const std::vector<std::vector<TaskId>>& members, std::size_t k,
          std::uint32_t group, TaskGraph& graph, EdgeList& edges,
          std::vector<TransferFault>& faults) {
  TaskId first = kNoTask;
  for (const auto& member : members) {
    if (k < member.size() && first == kNoTask) first = member[k];
  }
  for (const auto& member : members) {
    const bool ends = k >= member.size();
    if (!ends && same_collective(lowered, graph.tasks[member[k]], graph.tasks[first])) continue;
    faults.push_back({.kind = TransferFault::Kind::CollectiveOrder,
                      .task = ends ? first : member[k],
                      .other = ends ? kNoTask : first,
                      .group = group});
    for (const auto& waiting : members) {
      if (k < waiting.size()) graph.tasks[waiting[k]].never = true;
    }
    return false;
  }
  // All starts before one point, all ends behind it.
  const auto point = static_cast<Vertex>(graph.task_of.size());
  graph.task_of.push_back(first);
  for (const auto& member : members) {
    const TaskId task = member[k];
    edges.add(graph, {task, graph.start(task)}, {first, point}, EdgeKind::Collective);
    edges.add(graph, {first, point}, {task, graph.end(task)}, EdgeKind::Collective);
  }
  return true;
}

}  // namespace

std::uint32_t group_of(std::span<const CollectiveGroup> groups, std::int32_t rank, Kind kind) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
    const auto& members = group.members;
    return performs(group, kind) &&
           std::find(members.begin(), members.end(), rank) != members.end();
  });
  return static_cast<std::uint32_t>(found - groups.begin());
}

std::vector<TaskId> collectives_of(const TaskGraph& graph, const CollectiveGroup& group,
                                   std::int32_t rank) {
  std::vector<TaskId> found;
  const auto r = static_cast<std::size_t>(rank);
  if (r + 1 >= graph.first_of.size()) return found;
  for (TaskId id = graph.first_of[r]; id < graph.first_of[r + 1]; ++id) {
    if (performs(group, graph.tasks[id].kind)) found.push_back(id);
  }
  return found;
}

void meet_collectives(const Lowered& lowered, std::span<const CollectiveGroup> groups,
                      TaskGraph& graph, EdgeList& edges, std::vector<TransferFault>& faults) {
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    std::vector<std::vector<TaskId>> members;
    std::size_t longest = 0;
    for (const std::int32_t rank : groups[g].members) {
      members.push_back(collectives_of(graph, groups[g], rank));
      longest = std::max(longest, members.back().size());
    }
    for (std::size_t k = 0; k < longest; ++k) {
      if (!meet(lowered, members, k, g, graph, edges, faults)) break;
    }
  }
}

}  // namespace capo
