#include "run/processes/walk_all.h"

#include "core/graph/meetings.h"

#include <boost/range/iterator_range.hpp>

#include <algorithm>
#include <utility>

namespace capo::run {

Walk::Walk(const TaskGraph& graph, const Lowered& lowered, const StageMap& map, std::int32_t rank,
           MessageLibrary& library, const Issued& issued)
    : graph_(graph),
      lowered_(lowered),
      map_(map),
      rank_(rank),
      library_(library),
      issued_(issued),
      waits_for_(graph.task_of.size(), 0) {
  for (Vertex from = 0; from < graph.task_of.size(); ++from) {
    if (!own(from)) continue;
    ++count_;
    for (const auto edge : boost::make_iterator_range(out_edges(from, graph.edges))) {
      ++waits_for_[target(edge, graph.edges)];
    }
  }
  for (Vertex vertex = 0; vertex < graph.task_of.size(); ++vertex) {
    if (own(vertex) && waits_for_[vertex] == 0) ready_.push_back(vertex);
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
  if (vertex == graph_.start(graph_.task_of[vertex])) begin(vertex);
  for (const auto edge : boost::make_iterator_range(out_edges(vertex, graph_.edges))) {
    const auto next = static_cast<Vertex>(target(edge, graph_.edges));
    if (own(next) && --waits_for_[next] == 0) ready_.push_back(next);
  }
}

void Walk::begin(Vertex vertex) {
  library_.begin_group();
  graph_.for_each_task(vertex, [&](TaskId id) {
    const Task& task = graph_.tasks[id];
    if (!is_transfer(task.kind)) return;
    const std::int32_t peer = map_.home(map_.neighbour(task.kind, task.stage)).rank;
    const int through = issued_.first + communicator_between(issued_.layout, lowered_, task);
    Begun& begun = begun_.emplace_back(Begun{.task = id, .carries = id});
    const Piece piece{&begun.carries, sizeof begun.carries};
    begun.request = is_send(task.kind) ? library_.send(through, peer, 0, {piece, {}}, issued_.mode)
                                       : library_.receive(through, peer, 0, {piece, {}});
  });
  library_.end_group();
}

// A task that waits for ever lacks a tensor that nobody makes in time, so it does not begin.
bool Walk::can_begin(Vertex vertex) const {
  bool all = true;
  graph_.for_each_task(vertex, [&](TaskId id) { all = all && !graph_.tasks[id].never; });
  return all;
}

// The library says when the transfers that a vertex ends are over.
bool Walk::over(Vertex vertex) {
  const Vertex start = graph_.start(graph_.task_of[vertex]);
  if (vertex == start) return can_begin(vertex);
  bool all = true;
  for (Begun& begun : begun_) {
    if (begun.over || graph_.start(begun.task) != start) continue;
    begun.over = library_.over(begun.request);
    all = all && begun.over;
    if (begun.over && !is_send(graph_.tasks[begun.task].kind)) {
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
