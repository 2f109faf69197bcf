// A simulated step: an input, the environment that it is relative to, and everything that is read
// off its times. `capo simulate`, `compare` and `sweep` print it.
//
// The simulator runs what the verifier judges, on the same task graph. An input that cannot run to
// its end has no times. Hazards of memory do not change times, so such an order is simulated all
// the same. If another order is replayed than was captured, the replay is simulated.
//
// Costs may say that computations take less on a device that rests a part of the step (`rest`). How
// much it rests is known once the step is simulated, and then it is simulated again with these
// shares. Twice is enough: if all computations get shorter alike, and nothing else takes time, the
// makespan does too, and each share is what it was. What else takes time, and what differs from
// task to task, changes shares by a part of a part (rest_test.cpp). Bounds hold with the same
// shares: on an order that is faster the same work leaves devices less rest, so that its tasks take
// no less.
//
// The environment says how messages travel. If nothing about transfers is declared and the order
// writes none, links are ideal, as the papers on schedules have it. Tested by simulate_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/input.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/wiring.h"
#include "core/timeline/timeline.h"
#include "sim/costs.h"
#include "sim/device_costs.h"
#include "sim/durations.h"
#include "sim/memory.h"
#include "sim/task_times.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo {

struct Bound {
  double value = 0;
  std::string by;          ///< "L1", "L2", "L3", "work", "path"
  std::int32_t rank = -1;  ///< the rank at which it is reached; -1: none in particular

  /// The part of itself by which a value exceeds it.
  [[nodiscard]] double exceeded_by(double of) const { return value > 0 ? of / value - 1 : 0; }
};

struct Bounds {
  Bound makespan;
  Bound span;
  double memory = 0;  ///< the limit that they hold for, as the memory model counts; infinite: none
};

/// Bounds below which no order of the subject's tasks gets within `memory_limit` on each rank,
/// which may be infinite.
[[nodiscard]] Bounds lower_bounds(const Subject& subject, const Costs& costs,
                                  std::int32_t microbatches, const MemoryChange& memory,
                                  double memory_limit);

struct SimulationOptions {
  CheckOptions check;
  Costs costs;
  std::optional<MemoryChange> memory;  ///< nullopt: all is held until the weight gradient is done
  /// true: links are ideal; false: they queue as the environment says; nullopt: see above.
  std::optional<bool> ideal_links;
  /// The plan whose memory is counted, where modules have bytes; nullopt: nobody asks for it.
  std::optional<PlanOptions> memory_plan;
  std::vector<CostOrigin> origins;  ///< of costs that follow from a device
  std::string rates;                ///< the source of that device's rates
  /// The bounds hold for orders within this limit; nullopt: within what the order itself needs.
  std::optional<double> memory_limit;
};

class Simulation {
 public:
  /// Use simulation_of(). Input and options outlive the simulation, whose costs are those that
  /// times were simulated with.
  Simulation(const Input& input, const SimulationOptions& options, std::unique_ptr<Context> context,
             Links links, Costs costs, TaskTimes times);

  [[nodiscard]] const Subject& subject() const { return subject_; }
  [[nodiscard]] const TaskGraph& graph() const { return subject_.graph; }
  [[nodiscard]] const TaskTimes& times() const { return times_; }
  [[nodiscard]] const std::vector<RankTimes>& ranks() const { return ranks_; }
  [[nodiscard]] const Bounds& bounds() const { return bounds_; }
  [[nodiscard]] const MemoryChange& memory_model() const { return memory_; }
  /// One peak for each rank, in the unit of the memory model.
  [[nodiscard]] const std::vector<MemoryPeak>& peaks() const { return peaks_; }
  /// The memory of each rank under a plan, as the verifier counts it; nullopt if nobody asked, if
  /// a size is undeclared, or if there is no plan of the orders.
  [[nodiscard]] const std::optional<PlanResult>& planned() const { return planned_; }
  [[nodiscard]] const std::vector<CostOrigin>& origins() const { return origins_; }
  [[nodiscard]] const std::string& rates() const { return rates_; }
  [[nodiscard]] std::vector<MemoryStep> memory_course(std::int32_t rank) const;
  [[nodiscard]] std::int32_t microbatches() const { return context_->microbatches(); }
  /// The costs with the share of each rank's chunks, and of each device's use.
  [[nodiscard]] const Costs& costs() const { return costs_; }
  /// Whether the orders are those of a replay, which are not those that are captured.
  [[nodiscard]] bool replayed() const;

  /// Whether a cost tells what quantization takes of some task.
  [[nodiscard]] bool tells_quantization() const { return !quantizing_.empty(); }
  /// The time that quantization takes of a task, and of all tasks of a rank; 0 if no cost tells it.
  [[nodiscard]] double quantizing(TaskId task) const {
    return quantizing_.empty() ? 0 : quantizing_[task];
  }
  [[nodiscard]] double quantizing_of(std::size_t rank) const;

  [[nodiscard]] double makespan() const { return times_.makespan; }
  [[nodiscard]] double span() const { return span_; }
  /// The part of the span or the makespan in which the busiest rank does not compute.
  [[nodiscard]] double bubble_rate() const { return rate(span_); }
  [[nodiscard]] double bubble_rate_of_makespan() const { return rate(times_.makespan); }
  [[nodiscard]] double peak() const;     ///< the highest of the ranks
  [[nodiscard]] double exposed() const;  ///< communication that ranks wait for, of all together
  [[nodiscard]] std::int32_t microbatches_in_flight() const;  ///< of the rank that has most

  /// A task in one notation for every input: "F1.0", "dispatch-F1.0 l1", "B1.3 experts".
  [[nodiscard]] std::string label(TaskId task) const;

 private:
  [[nodiscard]] double rate(double of) const;
  [[nodiscard]] std::vector<MemoryPeak> peaks_of(const MemoryChanges& changes) const;

  const Input& input_;
  Costs costs_;
  std::unique_ptr<Context> context_;
  const Wiring& wiring_;
  Subject subject_;
  TaskTimes times_;
  std::vector<std::vector<std::int32_t>> layers_;  // by rank and chunk - 1
  std::vector<RankTimes> ranks_;
  std::vector<double> quantizing_;  // by task; empty if no cost tells it
  double span_ = 0;
  double busiest_ = 0;
  MemoryChange memory_;
  std::vector<MemoryPeak> peaks_;
  std::optional<PlanResult> planned_;
  std::vector<CostOrigin> origins_;
  std::string rates_;
  Bounds bounds_;
};

/// The simulation to be drawn. It refers to the simulation, which outlives it.
[[nodiscard]] Timeline timeline_of(const Simulation& simulation);

/// Adds to a simulation's timeline what each task waited for, which some pictures tell.
void add_causes(const Simulation& simulation, Timeline& timeline);

/// The reason why an input has no times.
struct CannotSimulate {
  std::string why;
  CheckResult check;  ///< its findings tell where
};

[[nodiscard]] Result<std::unique_ptr<Simulation>, CannotSimulate> simulation_of(
    const Input& input, const SimulationOptions& options);

}  // namespace capo
