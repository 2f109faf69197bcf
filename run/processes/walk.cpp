#include "run/processes/walk_all.h"

#include <boost/range/iterator_range.hpp>

#include <algorithm>
#include <utility>

namespace capo::run {

Walk::Walk(const Walkable& of, std::int32_t rank, MessageLibrary& library, const Issued& issued)
    : graph_(of.graph),
      lowered_(of.lowered),
      map_(of.map),
      groups_(of.groups),
      rank_(rank),
      library_(library),
      issued_(issued),
      waits_for_(of.graph.task_of.size(), 0) {
  for (Vertex from = 0; from < graph_.task_of.size(); ++from) {
    if (!own(from)) continue;
    ++count_;
    graph_.edges.for_each_out(from, [&](Vertex to, EdgeKind) { ++waits_for_[to]; });
  }
  for (Vertex vertex = 0; vertex < graph_.task_of.size(); ++vertex) {
    if (own(vertex) && waits_for_[vertex] == 0) ready_.push_back(vertex);
  }
  for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
    if (group_of_task(id) == nullptr) continue;
    tags_.try_emplace(collective_of(lowered_, graph_.tasks[id]), static_cast<int>(tags_.size()));
  }
}

bool Walk::own(Vertex vertex) const {
  return graph_.tasks[graph_.task_of[vertex]].rank == RankId(rank_);
}

bool Walk::go_on() {
  bool any = false;
  for (std::size_t at = 0; at < ready_.size();) {
    const Vertex vertex = ready_[at];
    if (!over(vertex)) {
      ++at;
      continue;
    }
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    run(vertex);
    any = true;
  }
  return any;
}

void Walk::run(Vertex vertex) {
  ran_.push_back(vertex);
  if (vertex == graph_.start(graph_.task_of[vertex]) && !tried_.contains(vertex)) begin(vertex);
  graph_.edges.for_each_out(vertex, [&](Vertex next, EdgeKind) {
    if (own(next) && --waits_for_[next] == 0) ready_.push_back(next);
  });
}

void Walk::begin(Vertex vertex) {
  library_.begin_group();
  graph_.for_each_task(vertex, [&](TaskId id) {
    if (is_transfer(graph_.tasks[id].kind)) return begin_transfer(id);
    const CollectiveGroup* const group = group_of_task(id);
    if (group != nullptr) begin_collective(id, *group, static_cast<int>(group - groups_.data()));
  });
  library_.end_group();
}

void Walk::begin_transfer(TaskId id) {
  const Task& task = graph_.tasks[id];
  const std::int32_t peer = map_.home(map_.neighbour(task.kind, task.stage)).rank;
  const int through = issued_.first + communicator_between(issued_.layout, lowered_, task);
  Begun& begun = begun_.emplace_back(Begun{.task = id, .carries = id});
  const Piece piece{&begun.carries, sizeof begun.carries};
  begun.request = is_send(task.kind) ? library_.send(through, peer, 0, {piece, {}}, issued_.mode)
                                     : library_.receive(through, peer, 0, {piece, {}});
}

void Walk::begin_collective(TaskId id, const CollectiveGroup& group, int communicator) {
  const int through = issued_.first + kCommunicatorsBetween + communicator;
  const int tag = tags_.at(collective_of(lowered_, graph_.tasks[id]));
  const auto begin_one = [&](auto call) {
    Begun& begun = begun_.emplace_back(Begun{.task = id, .carries = id});
    begun.request = call(Piece{&begun.carries, sizeof begun.carries});
  };
  for (const std::int32_t peer : group.members) {
    if (peer == rank_) continue;
    begin_one([&](const Piece& piece) {
      return library_.send(through, peer, tag, {piece, {}}, issued_.mode);
    });
    begin_one([&](const Piece& piece) {
      return library_.receive(through, peer, tag, {piece, {}});
    });
  }
}

// The group in which a rank performs a task with others; null if it is no collective.
const CollectiveGroup* Walk::group_of_task(TaskId id) const {
  const Task& task = graph_.tasks[id];
  const std::uint32_t group = group_of(groups_, task.rank, task.kind);
  return group < groups_.size() && groups_[group].members.size() > 1 ? &groups_[group] : nullptr;
}

// A task that waits for ever lacks a tensor that nobody makes in time, so it does not begin. One
// that should wait for ever for other members does, and its start counts when their messages came.
bool Walk::can_begin(Vertex vertex) {
  bool never = false;
  bool meets = false;
  graph_.for_each_task(vertex, [&](TaskId id) {
    never = never || graph_.tasks[id].never;
    meets = meets || group_of_task(id) != nullptr;
  });
  if (!never || !meets) return !never;
  if (tried_.insert(vertex).second) begin(vertex);
  return arrived(vertex);
}

// The library says when the transfers that a vertex ends are over.
bool Walk::over(Vertex vertex) {
  const Vertex start = graph_.start(graph_.task_of[vertex]);
  return vertex == start ? can_begin(vertex) : arrived(start);
}

bool Walk::arrived(Vertex start) {
  bool all = true;
  for (Begun& begun : begun_) {
    if (begun.over || graph_.start(begun.task) != start) continue;
    begun.over = library_.over(begun.request);
    all = all && begun.over;
    if (begun.over && is_receive(graph_.tasks[begun.task].kind)) {
      came_.push_back({.receive = begun.task, .send = begun.carries});
    }
  }
  return all;
}

bool Walk::finished() const {
  return ran_.size() == count_;
}

void Walk::cancel() {
  for (Begun& begun : begun_) {
    if (!std::exchange(begun.over, true)) library_.cancel(begun.request);
  }
}

}  // namespace capo::run
