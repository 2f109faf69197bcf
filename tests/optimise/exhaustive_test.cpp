#include "optimise/exhaustive.h"

#include "optimise/bounds.h"
#include "optimise/construct.h"
#include "optimise/walk.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace capo::optimise {
namespace {

constexpr std::uint64_t kManyNodes = 3'000'000;

// All orders of a rank in which no task stands before what it waits for there, and which fit.
std::vector<std::vector<SeriesId>> all_orders_of(const Problem& problem, std::size_t rank) {
  std::vector<std::vector<SeriesId>> all;
  std::vector<std::uint32_t> count(problem.series.size(), 0);
  std::vector<SeriesId> order;
  const std::function<void(double)> go_on = [&](double held) {
    if (order.size() == problem.tasks_of_rank()) return all.push_back(order);
    for (const SeriesId series : problem.of_rank[rank]) {
      const auto& behind = problem.series[series].behind;
      if (!problem.fits(problem.series[series].most_held(held))) continue;
      if (count[series] == problem.microbatches() ||
          std::any_of(behind.begin(), behind.end(),
                      [&](SeriesId first) { return count[first] <= count[series]; })) {
        continue;
      }
      ++count[series];
      order.push_back(series);
      go_on(problem.series[series].held_behind(held));
      order.pop_back();
      --count[series];
    }
  };
  go_on(0);
  return all;
}

// The least value of all orders of all ranks.
double least_of_all(const Problem& problem, Objective objective) {
  std::vector<std::vector<std::vector<SeriesId>>> of_rank;
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    of_rank.push_back(all_orders_of(problem, rank));
  }
  double least = std::numeric_limits<double>::infinity();
  Orders orders(of_rank.size());
  const std::function<void(std::size_t)> with = [&](std::size_t rank) {
    if (rank == of_rank.size()) {
      if (const auto figures = evaluate(problem, orders)) {
        least = std::min(least, value_of(*figures, objective));
      }
      return;
    }
    for (const auto& order : of_rank[rank]) {
      orders[rank] = order;
      with(rank + 1);
    }
  };
  with(0);
  return least;
}

// The best orders' value, from none; infinite if nothing fits.
double best_of(const Problem& problem, Objective objective, std::uint64_t& nodes) {
  const Exhausted found = exhaust(problem, objective, 1e6, kManyNodes);
  EXPECT_TRUE(found.complete);
  nodes += found.nodes;
  if (!found.better) return std::numeric_limits<double>::infinity();
  const auto figures = evaluate(problem, *found.better);
  EXPECT_TRUE(figures && fits(problem, *figures));
  const double best = value_of(*figures, objective);
  const Exhausted again = exhaust(problem, objective, best, kManyNodes);
  EXPECT_TRUE(again.complete && !again.better);
  return best;
}

// Tiny problems by chance, with uneven costs, transfers and memory limits.
TEST(Exhaustive, FindsTheBestOfAllOrders) {
  struct Size {
    Frame frame;
    int rounds;
  };
  const Size sizes[]{
      {{.ranks = 2, .microbatches = 2}, 200},
      {{.ranks = 2, .microbatches = 3}, 80},
      {{.ranks = 3, .microbatches = 2}, 150},
      {{.ranks = 1, .chunks = 2, .microbatches = 2}, 30},
      {{.ranks = 2, .chunks = 2, .microbatches = 1, .topology = Topology::V}, 60},
      {{.ranks = 2, .chunks = 2, .microbatches = 1}, 60},
      {{.ranks = 2, .chunks = 2, .microbatches = 1, .topology = Topology::Bidirectional}, 60},
  };
  std::mt19937 engine(11);
  std::uint64_t nodes = 0;
  int problems = 0;
  for (const auto& [frame, rounds] : sizes) {
    for (int round = 0; round < rounds; ++round) {
      SimulationOptions options;
      for (std::int32_t rank = 0; rank < frame.ranks; ++rank) {
        for (const auto key :
             {CostSetting::Key::Forward, CostSetting::Key::Backward, CostSetting::Key::Weight}) {
          const double unit = round % 3 == 0 ? 0.7 : 1;
          options.costs.set(
              {.scope = {.rank = rank}, .key = key, .value = unit * below(engine, 7)});
        }
      }
      options.costs.set({.key = CostSetting::Key::Latency, .value = 1.0 * below(engine, 5)});
      if (below(engine, 2) == 0) options.memory = MemoryChange{1, -0.5, -0.5};
      if (below(engine, 2) == 0) options.memory_limit = 1 + 0.5 * below(engine, 4);
      if (below(engine, 3) == 0) {
        const auto rank = static_cast<std::int32_t>(below(engine, 3)) - 1;
        options.costs.recomputed.scopes.push_back({.rank = rank});
        if (options.memory) options.memory->keep = 0.25 * below(engine, 4);
      }
      const auto problem = problem_of(frame, options);
      ASSERT_TRUE(problem.has_value());
      for (const auto objective : {Objective::Makespan, Objective::Span}) {
        ASSERT_TRUE(
            golden::equal(best_of(*problem, objective, nodes), least_of_all(*problem, objective)))
            << frame.ranks << " ranks, round " << round << ", span "
            << (objective == Objective::Span);
        ++problems;
      }
    }
  }
  fmt::print("{} problems, {} nodes\n", problems, nodes);
}

// A rank may have to wait, although a backward fits in front of what it waits for: what that makes
// again would be held until its weight gradient is done, and there is room for no other. Every
// order that does not wait so takes 73.
TEST(Exhaustive, WaitsWithABackwardThatTakesMemory) {
  SimulationOptions options{.memory = MemoryChange{.keep = 0}, .memory_limit = 1.0 / 3};
  options.costs =
      simulated::costs("re=0,comm=3", "r0.c1:f=2,b=1,w=5", "r1.c1:f=0,b=2,w=8", "r0.c2:f=0,b=1,w=2",
                       "r1.c2:f=2,b=0,w=7", "r0.c3:f=0,b=3,w=8", "r1.c3:f=2,b=3,w=0");
  options.costs.recomputed = *read_recomputed("all");
  const auto problem = problem_of({.ranks = 2, .chunks = 3, .microbatches = 2}, options);
  std::uint64_t nodes = 0;
  EXPECT_EQ(best_of(*problem, Objective::Makespan, nodes), 70);
}

// Optima that a solver proved, of up to 96 tasks.
TEST(Exhaustive, MeetsProvenOptima) {
  int rows = 0;
  int complete = 0;
  for (const auto& row : golden::published_rows("optimum")) {
    const Problem problem = problem_of_row(row);
    if (problem.tasks() > 96) continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    ++rows;
    const bool of_span = row.at("objective") == "span";
    const auto objective = of_span ? Objective::Span : Objective::Makespan;
    const double value = value_of(*evaluate(problem, *construct(problem, {})), objective);
    const Exhausted found = exhaust(problem, objective, value, 300'000);
    const double best =
        found.better ? value_of(*evaluate(problem, *found.better), objective) : value;
    const auto optimum = row.at(of_span ? "span" : "makespan").get<double>();
    EXPECT_GE(best, optimum * (1 - 1e-9));
    if (!found.complete) continue;
    ++complete;
    EXPECT_TRUE(golden::equal(best, optimum)) << best << " and not " << optimum;
  }
  fmt::print("{} of {} optima of up to 96 tasks are found and proved\n", complete, rows);
  EXPECT_EQ(complete, rows);
}

TEST(Exhaustive, EndsWithItsNodesOrWhenItIsStopped) {
  const auto problem = problem_of({.ranks = 4, .microbatches = 4}, {});
  const double value = evaluate(*problem, *construct(*problem, {}))->makespan;
  const Exhausted all = exhaust(*problem, Objective::Makespan, value, kManyNodes);
  EXPECT_TRUE(all.complete);
  EXPECT_TRUE(exhaust(*problem, Objective::Makespan, value, all.nodes).complete);
  EXPECT_FALSE(exhaust(*problem, Objective::Makespan, value, all.nodes - 1).complete);
  EXPECT_EQ(exhaust(*problem, Objective::Makespan, value, kManyNodes).nodes, all.nodes);
  EXPECT_FALSE(
      exhaust(*problem, Objective::Makespan, 1e9, kManyNodes, [] { return true; }).complete);
}

}  // namespace
}  // namespace capo::optimise
