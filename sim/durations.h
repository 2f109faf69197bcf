// Costs applied to a task graph: how long each vertex takes, and how long what one vertex made is
// on its way to the next.
//
// A message travels in one of three ways:
//
//   Ideal       it takes latency and bytes/bandwidth, occupies nobody and never queues: what the
//               papers on schedules assume; the graph is Wiring::ideal()
//   Rendezvous  both ends are occupied for that long, from when both are there
//   Buffered    the sender is occupied for bytes/bandwidth; the message arrives the latency later
//
// The first backward of a chunk or layer in its rank's order finds no .grad. Adding a dummy
// gradient
// (`autograd`) is three passes over memory: it reads two and writes one. If there is nothing to add
// to, a copy takes its place, which is a pass less, or where dummies are handed to nobody else,
// zeros, which are one pass. Orders are searched without that (Costs::alike).
//
// Tested by simulate_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "sim/costs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo {

enum class Links : std::uint8_t { Ideal, Rendezvous, Buffered };

/// "ideal", "rendezvous", "buffered".
[[nodiscard]] std::string_view name_of(Links links);

/// The step to simulate; all of it outlives what is made from it.
struct Subject {
  const Schedule& schedule;
  const StageMap& map;
  const Lowered& lowered;
  const TaskGraph& graph;
  Links links = Links::Ideal;
};

/// How many weight gradients the largest call of the step has; 0 if it has none.
[[nodiscard]] std::int32_t largest_call(const Subject& subject);

/// Tells for each chunk (at chunk - 1) of a rank whether its B is the input-gradient half: the rank
/// lists W of that chunk, and no microbatch is split by an I of its own.
[[nodiscard]] std::vector<bool> half_backwards(const StepList& steps, std::size_t chunks);

/// Says which rank or chunk a setting is about that the schedule lacks; nullopt if it has all.
[[nodiscard]] std::optional<std::string> misfit_of(const std::vector<CostSetting>& settings,
                                                   const Schedule& schedule);
/// Says the same of chunks that recompute, or which of them has a module that is configured to do
/// so by itself.
[[nodiscard]] std::optional<std::string> misfit_of(const Recomputed& recomputed,
                                                   const Schedule& schedule,
                                                   const ModuleTable& modules);

class Durations {
 public:
  Durations(const Subject& subject, const Costs& costs);

  /// The time from when a vertex begins to when it is done.
  [[nodiscard]] double of(Vertex vertex) const;
  /// The time from when `from` is done to when `to` has what came over the edge.
  [[nodiscard]] double lag(EdgeKind kind, Vertex from, Vertex to) const {
    return kind == lagging_ && !instant_ ? lag_between(from, to) : 0;
  }
  /// The time of a computation by itself; a member of a composite has its share of the whole, and a
  /// weight gradient that is not the first of its call what it takes further.
  [[nodiscard]] double of_task(TaskId task) const;
  /// The rank at the other end of a transfer.
  [[nodiscard]] RankId peer(const Task& transfer) const;
  /// The time of the bytes of a transfer that do not wait for its receive.
  [[nodiscard]] double ahead(const Task& transfer) const;
  /// The part of a computation by itself that quantization takes.
  [[nodiscard]] double quantizing(TaskId task) const;
  /// The cost `beside` of a computation.
  [[nodiscard]] double beside(TaskId task) const;

 private:
  [[nodiscard]] const TaskCosts& costs_of(RankId rank, const Step& computation) const;
  [[nodiscard]] LinkCosts link_of(const Task& transfer) const;
  [[nodiscard]] double lag_between(Vertex from, Vertex to) const;
  [[nodiscard]] double backward(TaskId id, const TaskCosts& costs, bool whole) const;
  void find_first_backwards();
  [[nodiscard]] bool is_further(TaskId task) const;
  [[nodiscard]] double of_task(TaskId id, const Task& task) const;
  [[nodiscard]] double computation(TaskId id, const Task& task) const;
  [[nodiscard]] double communication(const Task& task) const;

  const Subject& subject_;
  const Costs& costs_;
  EdgeKind lagging_;
  bool instant_ = true;  // no link takes any time
  bool alike_ = true;    // all links take as long
  LinkCosts common_link_;
  std::vector<std::vector<TaskCosts>> chunks_;               // by rank and chunk - 1
  std::vector<std::vector<std::vector<TaskCosts>>> layers_;  // and layer, if layers are taken apart
  std::vector<std::vector<bool>> halves_;  // by rank and chunk - 1: its Backward is the input half
  std::vector<bool> exchanges_;            // by rank: its exchanges are tasks of their own
  std::vector<bool> apart_;                // by rank: its layers are taken apart
  std::vector<bool> further_;              // by task: not the first of its call; empty: no such
  std::vector<bool> first_;                // by task: it finds no .grad; empty: it does not matter
};

}  // namespace capo
