// The parts of `capo sweep`: the points of its grid, what each comes to, and how that is shown.
//
//   capo sweep 1f1b zb --ranks 4,8 --microbatches 16 --memory 4     1f1b with 4 ranks, 1f1b with 8,
//                                                                   zb with 4, zb with 8
//
// Tested by tests/cli/simulate_test.cpp and tests/cli/sweep_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "schedules/catalogue.h"
#include "sim/choice.h"
#include "sim/costs.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace capo::cli {

enum class SweepFormat { Text, Json, Svg };

struct SweepRequest {
  std::vector<std::string> names;
  std::string ranks;
  std::string microbatches;
  std::string chunks;
  std::string memory_limits;
  std::vector<std::string> costs;
  CostPer cost_per = CostPer::Rank;
  std::string memory;
  SortBy sort = SortBy::Given;
  bool optimise = false;
  std::string placements = "loop";
  std::uint64_t moves = 500'000;
  std::uint64_t seed = 1;
  std::optional<SweepFormat> format;
  std::string output = "-";
  std::uint64_t max_runs = 100'000;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  Limits limits;
};

/// The costs of one --cost.
struct CostSet {
  std::string text;  ///< as typed; empty: the default
  std::vector<CostSetting> settings;
};

struct SweepPoint {
  schedules::Request schedule;
  std::optional<Topology> searched;  ///< the placement of an order that is searched for
  CostSet costs;
  std::optional<double> memory_limit;

  /// Schedules compete at points where this is the same.
  [[nodiscard]] auto competition() const {
    return std::tuple(schedule.ranks, schedule.microbatches, memory_limit, costs.text);
  }
};

struct SweepOutcome {
  SweepPoint point;
  bool fits = true;
  bool best = false;
  std::string refused;        ///< why; the figures are then nothing
  bool beyond_limit = false;  ///< that is why
  double makespan = 0;
  double span = 0;
  double bubble_rate = 0;
  double bubble_rate_makespan = 0;
  double peak = 0;
  double bound_makespan = 0;
  double bound_span = 0;
  std::size_t tasks = 0;
};

/// Throws CLI::ValidationError for what is no number; a grid of too many points is an Error.
[[nodiscard]] Result<std::vector<SweepPoint>> grid_of(const SweepRequest& request);

[[nodiscard]] SweepOutcome outcome_of(const SweepPoint& point, const SweepRequest& request);

/// Marks the best of each competition, and sorts each if asked to.
void choose(std::vector<SweepOutcome>& outcomes, SortBy by);

/// Writes what the format says. Where a picture goes to a file, standard output has the table.
[[nodiscard]] std::optional<Error> write_sweep(const std::vector<SweepOutcome>& outcomes,
                                               const SweepRequest& request);

}  // namespace capo::cli
