#include "sim/task_times.h"

#include "core/base/in_parallel.h"
#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace capo {

namespace {

bool is_computation(const TaskGraph& graph, Vertex vertex) {
  return is_compute(graph.tasks[graph.task_of[vertex]].kind);
}

// The computation that set off what `vertex` waited for last; kNoVertex if there is none.
Vertex origin_of(const TaskGraph& graph, const TaskTimes& times, Vertex vertex) {
  Vertex at = times.bound_by[vertex];
  while (at != kNoVertex && !is_computation(graph, at)) at = times.bound_by[at];
  return at;
}

class RankReading {
 public:
  RankReading(const Subject& subject, const TaskTimes& times, std::size_t rank)
      : graph_(subject.graph), times_(times) {
    for (TaskId id = graph_.first_of[rank]; id < graph_.first_of[rank + 1]; ++id) {
      const Vertex vertex = graph_.start(id);
      const bool again = !vertices_.empty() && vertices_.back() == vertex;
      if (is_compute(graph_.tasks[id].kind) && !again) vertices_.push_back(vertex);
    }
    // Those of one stream begin in their order.
    const auto begins_earlier = [&](Vertex a, Vertex b) {
      return times.at[a].begin < times.at[b].begin;
    };
    if (!std::is_sorted(vertices_.begin(), vertices_.end(), begins_earlier))
      std::stable_sort(vertices_.begin(), vertices_.end(), begins_earlier);
  }

  RankTimes run() {
    double computed_until = 0;
    for (const Vertex vertex : vertices_) {
      const double begin = times_.at[vertex].begin;
      const double done = times_.at[vertex].done;
      if (begin > computed_until) add_wait(vertex, computed_until);
      rank_.busy += std::max(0.0, done - std::max(begin, computed_until));
      computed_until = std::max(computed_until, done);
    }
    if (!vertices_.empty()) rank_.first = times_.at[vertices_.front()].begin;
    rank_.last = computed_until;
    if (computed_until < times_.makespan) {
      rank_.idle.push_back(
          {.cause = Idle::Cause::Drain, .begin = computed_until, .end = times_.makespan});
    }
    for (const Idle& idle : rank_.idle) {
      rank_.bubble += idle.end - idle.begin;
      rank_.exposed += idle.exposed;
    }
    return std::move(rank_);
  }

 private:
  void add_wait(Vertex next, double from) {
    Idle idle{.cause = next == vertices_.front() ? Idle::Cause::WarmUp : Idle::Cause::Wait,
              .begin = from,
              .end = times_.at[next].begin,
              .next = graph_.task_of[next]};
    const Vertex origin = origin_of(graph_, times_, next);
    double set_off = 0;
    if (origin != kNoVertex) {
      idle.waits_for = graph_.task_of[origin];
      set_off = times_.at[origin].done;
    }
    idle.exposed = idle.end - std::clamp(set_off, idle.begin, idle.end);
    rank_.idle.push_back(idle);
  }

  const TaskGraph& graph_;
  const TaskTimes& times_;
  std::vector<Vertex> vertices_;  // of the rank's computations, by their beginning
  RankTimes rank_;
};

}  // namespace

WaitCounts::WaitCounts(const DependencyGraph& edges) : few_(edges.vertices()) {
  for (Vertex from = 0; from < few_.size(); ++from) {
    edges.for_each_out(from, [&](Vertex to, EdgeKind) {
      if (few_[to] == kMany) {
        ++many_[to];
      } else if (++few_[to] == kMany) {
        many_[to] = kMany;
      }
    });
  }
}

std::string_view name_of(Idle::Cause cause) {
  constexpr std::array<std::string_view, 3> kNames{"warm-up", "wait", "drain"};
  return kNames[as_index(cause)];
}

std::vector<RankTimes> rank_times(const Subject& subject, const TaskTimes& times) {
  std::vector<RankTimes> ranks(subject.graph.first_of.size() - 1);
  in_parallel(ranks.size(), threads_worth(subject.graph.tasks.size()),
              [&](std::size_t rank) { ranks[rank] = RankReading(subject, times, rank).run(); });
  return ranks;
}

std::vector<double> quantizing_times(const Subject& subject, const Costs& costs,
                                     const TaskTimes& times) {
  if (!costs.tell_quantization()) return {};
  const Durations durations(subject, costs);
  const TaskGraph& graph = subject.graph;
  std::vector<double> all(graph.tasks.size(), 0);
  for (TaskId id = 0; id < all.size(); ++id) {
    const double quantizing = durations.quantizing(id);
    if (quantizing <= 0) continue;
    double by_themselves = 0;
    graph.for_each_task(graph.start(id),
                        [&](TaskId member) { by_themselves += durations.of_task(member); });
    const double ran = times.end_of(graph, id) - times.start_of(graph, id);
    all[id] = quantizing * ran / by_themselves;
  }
  const bool none = std::all_of(all.begin(), all.end(), [](double takes) { return takes == 0; });
  return none ? std::vector<double>() : all;
}

std::vector<double> used_shares(const Subject& subject, const Costs& costs,
                                const TaskTimes& times) {
  const TaskGraph& graph = subject.graph;
  const std::size_t ranks = subject.schedule.ranks.size();
  std::map<std::int32_t, std::vector<std::pair<double, double>>> computations;  // by device
  const auto device_of = [&](std::size_t rank) {
    return costs.devices.empty() ? static_cast<std::int32_t>(rank) : costs.devices[rank];
  };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto& of_device = computations[device_of(rank)];
    for (TaskId id = graph.first_of[rank]; id < graph.first_of[rank + 1]; ++id) {
      if (!is_compute(graph.tasks[id].kind)) continue;
      of_device.emplace_back(times.start_of(graph, id), times.end_of(graph, id));
    }
  }
  std::map<std::int32_t, double> used;
  for (auto& [device, of_device] : computations) {
    std::ranges::sort(of_device);
    double busy = 0;
    double until = 0;
    for (const auto& [begin, end] : of_device) {
      busy += std::max(0.0, end - std::max(begin, until));
      until = std::max(until, end);
    }
    used[device] = times.makespan > 0 ? busy / times.makespan : 1;
  }
  std::vector<double> shares;
  for (std::size_t rank = 0; rank < ranks; ++rank) shares.push_back(used[device_of(rank)]);
  return shares;
}

double span_of(const std::vector<RankTimes>& ranks) {
  double span = 0;
  for (const RankTimes& rank : ranks) span = std::max(span, rank.last - rank.first);
  return span;
}

std::vector<TaskId> critical_path(const Subject& subject, const TaskTimes& times) {
  const TaskGraph& graph = subject.graph;
  std::vector<TaskId> path;
  if (times.at.empty()) return path;
  const auto last = std::max_element(times.at.begin(), times.at.end(),
                                     [](const auto& a, const auto& b) { return a.done < b.done; });
  for (auto at = static_cast<Vertex>(last - times.at.begin()); at != kNoVertex;
       at = times.bound_by[at]) {
    const TaskId task = graph.task_of[at];
    if (!graph.is_meeting(at) && (path.empty() || path.back() != task)) path.push_back(task);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace capo
