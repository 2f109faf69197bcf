// Problems and orders for tests: of the published rows, by chance, and from published schedules.

#pragma once

#include "optimise/evaluation.h"
#include "optimise/problem.h"
#include "schedules/catalogue.h"
#include "tests/sim/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo::optimise {

/// The topology of a row of zb_reference.json.
inline Topology topology_of(const nlohmann::json& row) {
  const auto placement = row.at("placement").get<std::string>();
  if (placement == "V") return Topology::V;
  return placement == "bidirectional" ? Topology::Bidirectional : Topology::Loop;
}

/// The problem whose optimum, or one of whose orders, the row tells.
inline Problem problem_of_row(const nlohmann::json& row) {
  const bool two_pipelines = topology_of(row) == Topology::Bidirectional;
  const auto problem =
      problem_of({.ranks = row.at("p"),
                  .chunks = row.at("v"),
                  .microbatches = row.at("m").get<std::int32_t>() / (two_pipelines ? 2 : 1),
                  .topology = topology_of(row)},
                 golden::options_of(row));
  EXPECT_TRUE(problem.has_value());
  return *problem;
}

/// Draws from 0 to less than `most`, the same numbers with every compiler and library.
inline std::uint32_t below(std::mt19937& engine, std::size_t most) {
  return static_cast<std::uint32_t>(engine() % most);
}

/// A frame, and costs by chance, half of them of each rank.
struct ByChance {
  Frame frame;
  SimulationOptions options;
};

inline ByChance step_by_chance(std::mt19937& engine) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(below(engine, static_cast<std::size_t>(high - low + 1)));
  };
  constexpr Topology kPlacements[]{Topology::Loop, Topology::Loop, Topology::V,
                                   Topology::Bidirectional};
  const auto place = kPlacements[between(0, 3)];
  const int chunks = place == Topology::Loop ? between(1, 3) : 2;
  const Frame frame{
      .ranks = between(1, 6), .chunks = chunks, .microbatches = between(1, 9), .topology = place};
  SimulationOptions options;
  options.memory = between(0, 1) == 0
                       ? MemoryChange{}
                       : MemoryChange{.forward = 1, .backward = -0.5, .weight = -0.5};
  const auto set = [&](std::int32_t rank, CostSetting::Key key, int most) {
    const double value = between(0, 3) == 0 ? 0.7 * between(0, most) : between(0, most);
    options.costs.set({.scope = {.rank = rank}, .key = key, .value = value});
  };
  const bool by_rank = between(0, 1) == 0;
  for (std::int32_t rank = by_rank ? 0 : -1; rank < (by_rank ? frame.ranks : 0); ++rank) {
    for (const auto key :
         {CostSetting::Key::Forward, CostSetting::Key::Backward, CostSetting::Key::Weight}) {
      set(rank, key, 6);
    }
  }
  set(-1, CostSetting::Key::Latency, 3);
  return {.frame = frame, .options = options};
}

/// A problem with such costs, and without a memory limit.
inline Problem problem_by_chance(std::mt19937& engine) {
  const ByChance step = step_by_chance(engine);
  const auto problem = problem_of(step.frame, step.options);
  EXPECT_TRUE(problem.has_value()) << (problem ? "" : problem.error());
  return *problem;
}

/// A step by chance whose weight gradients are called several at a time, and take less in a call.
inline ByChance fused_step_by_chance(std::mt19937& engine) {
  ByChance step = step_by_chance(engine);
  step.frame.weights_in_call = 2 + static_cast<std::int32_t>(below(engine, 4));
  step.frame.microbatches += 1;
  const auto set = [&](std::int32_t rank, CostSetting::Key key, double value) {
    step.options.costs.set({.scope = {.rank = rank}, .key = key, .value = value});
  };
  set(-1, CostSetting::Key::Fuse, 0.1 * (1 + below(engine, 9)));
  set(0, CostSetting::Key::Weight, 1 + 0.7 * below(engine, 5));
  if (below(engine, 2) == 0) set(0, CostSetting::Key::Fuse, 0.35);
  return step;
}

/// A step by chance in which some chunks recompute, and keep a part of what they hold.
inline ByChance recomputed_step_by_chance(std::mt19937& engine) {
  ByChance step = step_by_chance(engine);
  const auto draw = [&](std::int32_t most) {
    return static_cast<std::int32_t>(below(engine, static_cast<std::size_t>(most)));
  };
  auto& scopes = step.options.costs.recomputed.scopes;
  const std::int32_t named = 1 + draw(3);
  for (std::int32_t i = 0; i < named; ++i) {
    scopes.push_back({.rank = draw(3) == 0 ? -1 : draw(step.frame.ranks),
                      .chunk = draw(2) == 0 ? -1 : 1 + draw(step.frame.chunks)});
  }
  constexpr MemoryChange kModels[]{{1, 0, -1}, {1, -0.5, -0.5}, {1, -0.9, -0.1}, {1, -1, 0}};
  step.options.memory = kModels[draw(4)];
  step.options.memory->keep = 0.1 * draw(10);
  if (draw(2) == 0)
    step.options.costs.set({.key = CostSetting::Key::Again, .value = 0.7 * draw(4)});
  return step;
}

/// The least limit within which a microbatch by itself runs.
inline double least_limit(const Problem& problem) {
  double most = 0;
  for (const auto& rank : problem.of_rank) {
    double held = 0;
    for (const SeriesId id : rank) {
      const Series& series = problem.series[id];
      if (half_of(id) == Half::Forward) {
        held = series.held_behind(problem.frame.topology == Topology::Bidirectional ? 0 : held);
      }
      if (half_of(id) != Half::Weight) most = std::max({most, held, held + series.during});
    }
  }
  return most;
}

/// All forwards, then all backwards: runs under every placement.
inline Orders all_forwards_first(const Problem& problem) {
  Orders orders(problem.of_rank.size());
  const auto add = [&](std::size_t stage, Half half) {
    const SeriesId series = series_of(stage, half);
    auto& order = orders[problem.series[series].rank];
    order.insert(order.end(), problem.microbatches(), series);
  };
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) add(stage, Half::Forward);
  for (std::size_t stage = problem.stages(); stage-- > 0;) {
    add(stage, Half::Backward);
    add(stage, Half::Weight);
  }
  return orders;
}

}  // namespace capo::optimise
