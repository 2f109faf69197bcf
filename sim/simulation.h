// A simulated step: an input, the environment it is relative to, and everything read off its
// timeline. What `capo simulate`, `compare` and `sweep` print.
//
// What is simulated is what the verifier judges, on the same task graph. An input that cannot run
// to its end has no timeline; hazards of memory do not change times, so such an order is simulated
// all the same. Where something else is replayed than was captured, the replay is simulated.
//
// How messages travel is read off the environment: where nothing about transfers is declared and
// the order writes none, links are ideal, as the papers on schedules have it. Tested by
// simulate_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/input.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/wiring.h"
#include "sim/bounds.h"
#include "sim/costs.h"
#include "sim/durations.h"
#include "sim/idle.h"
#include "sim/memory.h"
#include "sim/timeline.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo {

struct SimulationOptions {
  CheckOptions check;
  Costs costs;
  std::optional<MemoryChange> memory;  ///< nothing: all is held until the weight gradient is done
  /// Whether links are ideal, or queue as the environment says; nothing: see above.
  std::optional<bool> ideal_links;
  std::optional<double> memory_limit;  ///< of the bounds; nothing: what the order itself needs most
};

class Simulation {
 public:
  /// Use simulation_of(). Input and options outlive the simulation.
  Simulation(const Input& input, const SimulationOptions& options, std::unique_ptr<Context> context,
             Links links);

  [[nodiscard]] const Subject& subject() const { return subject_; }
  [[nodiscard]] const TaskGraph& graph() const { return subject_.graph; }
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }
  [[nodiscard]] const std::vector<RankTimes>& ranks() const { return ranks_; }
  [[nodiscard]] const Bounds& bounds() const { return bounds_; }
  [[nodiscard]] const MemoryChange& memory_model() const { return memory_; }
  /// By rank, in the unit of the memory model.
  [[nodiscard]] const std::vector<MemoryPeak>& peaks() const { return peaks_; }
  /// By rank, in bytes; empty where the model file does not state them.
  [[nodiscard]] const std::vector<MemoryPeak>& byte_peaks() const { return byte_peaks_; }
  [[nodiscard]] std::vector<MemoryStep> memory_course(std::int32_t rank) const;
  [[nodiscard]] std::int32_t microbatches() const { return context_->microbatches(); }
  [[nodiscard]] const Costs& costs() const { return options_.costs; }
  /// Whether the orders are those of a replay, which are not those that are captured.
  [[nodiscard]] bool replayed() const;

  [[nodiscard]] double makespan() const { return timeline_.makespan; }
  [[nodiscard]] double span() const { return span_; }
  /// Of the span or the makespan, the part in which the busiest rank does not compute.
  [[nodiscard]] double bubble_rate() const { return rate(span_); }
  [[nodiscard]] double bubble_rate_of_makespan() const { return rate(timeline_.makespan); }
  [[nodiscard]] double peak() const;  ///< of the ranks

  /// "F1.0", "dispatch-F1.0 l1", "B1.3 experts": one notation for every input.
  [[nodiscard]] std::string label(TaskId task) const;

 private:
  [[nodiscard]] double rate(double of) const;
  [[nodiscard]] std::vector<MemoryPeak> peaks_of(const MemoryChanges& changes) const;

  const Input& input_;
  const SimulationOptions& options_;
  std::unique_ptr<Context> context_;
  const Wiring& wiring_;
  Subject subject_;
  Timeline timeline_;
  std::vector<std::vector<std::int32_t>> layers_;  // by rank and chunk - 1
  std::vector<RankTimes> ranks_;
  double span_ = 0;
  double busiest_ = 0;
  MemoryChange memory_;
  std::vector<MemoryPeak> peaks_;
  std::vector<MemoryPeak> byte_peaks_;
  Bounds bounds_;
};

/// Why there is no timeline.
struct CannotSimulate {
  std::string why;
  CheckResult check;  ///< its findings tell where
};

[[nodiscard]] Result<std::unique_ptr<Simulation>, CannotSimulate> simulation_of(
    const Input& input, const SimulationOptions& options);

}  // namespace capo
