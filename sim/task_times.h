// When every vertex of a task graph ran, and where the time of each rank goes: computing, waiting
// for another computation, or waiting for bytes.
//
//   rank 1   |--warm-up--|F1.0|  |F1.1|...|B1.1|-drain-|
//
// Times are in the unit of the costs and begin at 0 with the first task. They are kept by vertex,
// so that a transfer has both when it was issued and when it was over, and so that each vertex can
// be followed back to the beginning over what it waited for last.
//
// A rank is idle between its computations, before the first (warm-up) and after the last (drain).
// Each idle interval has a cause: what the next computation waited for last, followed back over
// everything that is communication to the computation that set it off. From the end of that one on
// the rank waits for bytes alone; that part of the interval is exposed communication. If several
// things were equally late, the one with the lowest vertex is named.
//
// Computations that overlap, on a stream of weight gradients, count once. Tested by
// task_times_test.cpp.

#pragma once

#include "core/graph/task_graph.h"
#include "sim/durations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace capo {

constexpr Vertex kNoVertex = 0xffffffff;

struct TaskTimes {
  struct At {
    double begin = 0;  ///< when all that it waited for was there
    double done = 0;   ///< when it was over
  };

  /// Times of a run in which nothing has happened yet.
  explicit TaskTimes(std::size_t vertices) : at(vertices), bound_by(vertices, kNoVertex) {}

  /// Tells a vertex when something that it waits for was there.
  void bind(Vertex vertex, Vertex by, double there) {
    // The lower of two equal vertices counts, so that the order of the calls does not show.
    const bool later =
        there > at[vertex].begin || (there == at[vertex].begin && by < bound_by[vertex]);
    if (later) bound_by[vertex] = by;
    at[vertex].begin = std::max(at[vertex].begin, there);
  }

  std::vector<At> at;            ///< by vertex
  std::vector<Vertex> bound_by;  ///< by vertex: what it waited for last; kNoVertex: for nothing
  double makespan = 0;           ///< when the last task was over

  [[nodiscard]] double start_of(const TaskGraph& graph, TaskId task) const {
    return at[graph.start(task)].begin;
  }
  [[nodiscard]] double end_of(const TaskGraph& graph, TaskId task) const {
    return at[graph.end(task)].done;
  }
};

/// How much each vertex waits for that is not over yet. A byte does but for collectives of many
/// ranks.
class WaitCounts {
 public:
  explicit WaitCounts(const DependencyGraph& edges);

  [[nodiscard]] bool none(Vertex vertex) const { return few_[vertex] == 0; }
  /// One thing is over. Whether that was the last that the vertex waited for.
  [[nodiscard]] bool take_last(Vertex vertex) {
    if (few_[vertex] < kMany) return --few_[vertex] == 0;
    const auto many = many_.find(vertex);
    if (--many->second > 0) return false;
    few_[vertex] = 0;
    return true;
  }

 private:
  static constexpr std::uint8_t kMany = 0xff;  // it is among many_

  std::vector<std::uint8_t> few_;
  std::unordered_map<Vertex, std::uint32_t> many_;
};

struct Idle {
  enum class Cause : std::uint8_t {
    WarmUp,  ///< nothing ran yet
    Wait,    ///< between two computations
    Drain,   ///< nothing runs any more
  };

  Cause cause = Cause::Wait;
  double begin = 0;
  double end = 0;
  double exposed = 0;          ///< the part of it that is communication which nothing hides
  TaskId next = kNoTask;       ///< what runs then; none in the drain
  TaskId waits_for = kNoTask;  ///< the computation that set off what was waited for; kNoTask: none
};

/// "warm-up", "wait", "drain".
[[nodiscard]] std::string_view name_of(Idle::Cause cause);

struct RankTimes {
  double busy = 0;     ///< computing
  double bubble = 0;   ///< not computing, from 0 to the makespan
  double exposed = 0;  ///< the part of the bubble that is exposed communication
  double first = 0;    ///< beginning of the first computation
  double last = 0;     ///< end of the last
  std::vector<Idle> idle;
};

/// The time that quantization takes of each task as it ran: where tasks share a device, or are
/// members of a composite, it grows or shrinks as they do. Empty if no cost tells it of any.
[[nodiscard]] std::vector<double> quantizing_times(const Subject& subject, const Costs& costs,
                                                   const TaskTimes& times);

/// One RankTimes for each rank. A rank without a computation is idle throughout.
[[nodiscard]] std::vector<RankTimes> rank_times(const Subject& subject, const TaskTimes& times);

/// The part of the makespan in which the device of each rank computes, by rank. Ranks that share a
/// device, as the costs say, count once.
[[nodiscard]] std::vector<double> used_shares(const Subject& subject, const Costs& costs,
                                              const TaskTimes& times);

/// The longest of the ranks' times from first to last computation: the papers' cost of a step.
[[nodiscard]] double span_of(const std::vector<RankTimes>& ranks);

/// The tasks that make the makespan: from one that begins at 0 to one that ends last, each waiting
/// for the one before. Tasks of one vertex count once, by the first.
[[nodiscard]] std::vector<TaskId> critical_path(const Subject& subject, const TaskTimes& times);

}  // namespace capo
