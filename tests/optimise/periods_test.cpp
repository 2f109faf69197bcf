#include "optimise/periods.h"

#include "optimise/evaluation.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace capo::optimise {
namespace {

bool never() {
  return false;
}

Problem v_of(std::int32_t ranks, std::int32_t microbatches, const std::string& costs,
             double limit) {
  SimulationOptions options{.memory_limit = limit};
  options.costs = simulated::costs(costs);
  options.costs.per = CostPer::Rank;
  return *problem_of(
      {.ranks = ranks, .chunks = 2, .microbatches = microbatches, .topology = Topology::V},
      options);
}

double best_of(const Problem& problem, std::uint64_t courses) {
  double best = std::numeric_limits<double>::infinity();
  Periods(problem, 1).run(courses, never, [&](const Orders& orders) {
    best = std::min(best, evaluate(problem, orders)->makespan);
  });
  return best;
}

// A V of equal costs has a course without idle time that holds little more than a third of what a
// line holds (controllable memory).
TEST(Periods, FindACourseWithoutIdleTime) {
  const Problem problem = v_of(6, 24, "f=2,b=2,w=2", 4);
  Periods periods(problem, 1);
  periods.run(50'000, never, [](const Orders&) {});
  EXPECT_NEAR(periods.period(), 6, 0.05);
}

TEST(Periods, TakeNoLongerForMoreMicrobatches) {
  const double few = best_of(v_of(4, 50, "f=10,b=16,w=4,comm=1", 3), 20'000);
  const double many = best_of(v_of(4, 500, "f=10,b=16,w=4,comm=1", 3), 20'000);
  EXPECT_NEAR(many / 500, few / 50, 0.1 * few / 50);
}

TEST(Periods, AreOfOrdersThatRunAndFit) {
  std::mt19937 engine(3);
  int with_orders = 0;
  for (int round = 0; round < 100; ++round) {
    Problem problem = problem_by_chance(engine);
    if (problem.frame.topology == Topology::Bidirectional) continue;
    double least = 0;
    for (const auto& rank : problem.of_rank) {
      double each = 0;
      for (const SeriesId series : rank) each += std::max(0.0, problem.series[series].holds);
      least = std::max(least, each);
    }
    problem.memory_limit = least * (1 + below(engine, 3));
    int handed_over = 0;
    Periods(problem, 1).run(2'000, never, [&](const Orders& orders) {
      ++handed_over;
      const auto figures = evaluate(problem, orders);
      ASSERT_TRUE(figures.has_value());
      EXPECT_TRUE(fits(problem, *figures));
    });
    if (handed_over > 0) ++with_orders;
  }
  EXPECT_GE(with_orders, 60);
}

TEST(Periods, StopAndAreAFunctionOfTheSeed) {
  const Problem problem = v_of(4, 8, "f=10,b=16,w=4,comm=1", 3);
  const auto orders_of_run = [&](std::uint64_t seed) {
    std::vector<Orders> all;
    Periods(problem, seed).run(5'000, never, [&](const Orders& orders) { all.push_back(orders); });
    return all;
  };
  EXPECT_EQ(orders_of_run(2), orders_of_run(2));
  EXPECT_NE(orders_of_run(2), orders_of_run(3));
  int asked = 0;
  Periods(problem, 2)
      .run(
          1'000'000'000, [&] { return ++asked == 10; }, [](const Orders&) {});
  EXPECT_EQ(asked, 10);
}

}  // namespace
}  // namespace capo::optimise
