// The rows of published schedules as the simulator takes them, for tests.

#pragma once

#include "tests/sim/simulated.h"
#include "tests/support/published_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace capo::golden {

using nlohmann::json;
using testing_support::published_rows;
using testing_support::published_tables;
using testing_support::request_of;

/// What a generator looked at, as settings: of all ranks, or of each where they differ.
inline Costs costs_of(const schedules::Request& request) {
  using Key = CostSetting::Key;
  Costs all;
  const auto set = [&all](std::int32_t rank, Key key, double value) {
    all.set({.scope = {.rank = rank}, .key = key, .value = value});
  };
  const auto set_times = [&](std::int32_t rank, const schedules::Costs& costs) {
    set(rank, Key::Forward, costs.forward);
    set(rank, Key::Backward, costs.backward);
    set(rank, Key::Weight, costs.weight);
  };
  set(-1, Key::Latency, request.costs.transfer);
  if (request.rank_costs.empty()) set_times(-1, request.costs);
  for (std::int32_t rank = 0; const schedules::Costs& costs : request.rank_costs) {
    set_times(rank++, costs);
  }
  return all;
}

/// Under the memory limit of the row, if it has one.
inline SimulationOptions options_of(const json& row) {
  const schedules::Request request = request_of(row);
  SimulationOptions options{.costs = costs_of(request),
                            .memory = MemoryChange{.forward = request.memory->forward,
                                                   .backward = request.memory->backward,
                                                   .weight = request.memory->weight}};
  options.costs.overlap = row.value("overlap_factor", 1.0);
  const json limit = row.value("mem_limit", json());
  if (limit.is_number()) options.memory_limit = limit.get<double>();
  return options;
}

/// Of doubles that were added up in another order.
inline bool equal(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b));
}

/// What every rank holds at most.
inline std::vector<double> peaks(const simulated::Simulated& of, const MemoryChange& model) {
  std::vector<double> all;
  const auto changes = same_for_all(of.input.schedule, model, {});
  for (std::size_t rank = 0; rank < changes.size(); ++rank) {
    all.push_back(
        peak_of(of->subject(), of->times(), changes, static_cast<std::int32_t>(rank)).held);
  }
  return all;
}

}  // namespace capo::golden
