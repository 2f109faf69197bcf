#include "optimise/bounds.h"

#include "optimise/construct.h"
#include "optimise/evaluation.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace capo::optimise {
namespace {

Problem linear(std::int32_t ranks, std::int32_t microbatches, const std::string& costs,
               std::optional<double> limit = std::nullopt) {
  SimulationOptions options{.memory_limit = limit};
  options.costs = simulated::costs(costs);
  return *problem_of({.ranks = ranks, .microbatches = microbatches}, options);
}

TEST(LowerBounds, OfOneMicrobatchIsItsPath) {
  const LowerBounds bounds = lower_bounds(linear(3, 1, "f=2,b=3,w=0,comm=1"));
  EXPECT_NEAR(bounds.makespan.value, 3 * 2 + 3 * 3 + 4 * 1, 1e-9);
}

TEST(LowerBounds, CountWhatStandsBeforeAndBehind) {
  // Rank 0 works 4 * 3, and has four forwards to run until the first backward arrives at 7.
  const LowerBounds bounds = lower_bounds(linear(3, 4, "f=1,b=1,w=1,comm=0.5"));
  EXPECT_NEAR(bounds.makespan.value, 7 - 4 + 12, 1e-9);
  EXPECT_EQ(bounds.makespan.by, "machine");
  EXPECT_EQ(words_for(bounds.makespan),
            "the work of rank 0, and what must come before and behind each of its tasks");
}

TEST(LowerBounds, CountMemory) {
  // One microbatch at a time passes all three ranks.
  const LowerBounds one = lower_bounds(linear(3, 5, "f=1,b=1,w=1", 1));
  EXPECT_NEAR(one.makespan.value, 5 * 7, 1e-9);
  EXPECT_NEAR(one.span.value, 5 * 7, 1e-9);
  EXPECT_LT(lower_bounds(linear(3, 5, "f=1,b=1,w=1", 2)).makespan.value, 30);
}

TEST(LowerBounds, AreNotAboveProvenOptima) {
  int met = 0;
  for (const auto& row : golden::published_rows("optimum")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const LowerBounds bounds = lower_bounds(problem_of_row(row));
    const bool of_span = row.at("objective") == "span";
    const auto optimum = row.at(of_span ? "span" : "makespan").get<double>();
    const double bound = of_span ? bounds.span.value : bounds.makespan.value;
    EXPECT_LE(bound, optimum) << (of_span ? bounds.span.by : bounds.makespan.by);
    // All times of the rows are whole numbers.
    if (std::ceil(bound - 1e-9) == optimum) ++met;
  }
  fmt::print("{} of 218 optima are the bound\n", met);
  EXPECT_GE(met, 170);
}

TEST(LowerBounds, AreNotAboveAnythingThatRuns) {
  std::mt19937 engine(7);
  for (int round = 0; round < 400; ++round) {
    Problem problem = problem_by_chance(engine);
    Evaluation evaluation(problem, all_forwards_first(problem));
    // A walk by chance towards what is better.
    for (int i = 0; i < 400; ++i) {
      const std::size_t rank = below(engine, problem.of_rank.size());
      const auto length = problem.tasks_of_rank();
      const std::uint32_t from = below(engine, length);
      const double before = evaluation.makespan() + evaluation.span();
      if (!evaluation.shift(rank, from, below(engine, length))) continue;
      if (evaluation.makespan() + evaluation.span() > before) evaluation.undo();
    }
    const Figures figures = evaluation.figures();
    problem.memory_limit = std::max(figures.highest_peak(), 1e-9);
    const LowerBounds bounds = lower_bounds(problem, 300'000);
    ASSERT_LE(bounds.makespan.value, figures.makespan) << bounds.makespan.by << " in " << round;
    ASSERT_LE(bounds.span.value, figures.span) << bounds.span.by << " in " << round;
  }
}

// Of very many microbatches only those at both ends are looked at one by one.
TEST(LowerBounds, OfManyMicrobatchesAreNotAboveAnythingThatRuns) {
  std::mt19937 engine(5);
  int rounds = 0;
  while (rounds < 60) {
    Problem problem = problem_by_chance(engine);
    if (problem.frame.ranks > 3) continue;
    problem.frame.microbatches = 8 * problem.frame.ranks + static_cast<int>(below(engine, 90));
    double most = 0;  // one microbatch fits
    for (const auto& rank : problem.of_rank) {
      double each = 0;
      for (const SeriesId series : rank) each += std::max(0.0, problem.series[series].holds);
      most = std::max(most, each);
    }
    problem.memory_limit = std::max(1e-9, most * (1 + below(engine, 4)));
    const Rules rules{.patience = 0.5};
    const auto orders = construct(problem, rules);
    ASSERT_TRUE(orders.has_value());
    const Figures figures = *evaluate(problem, *orders);
    const LowerBounds bounds = lower_bounds(problem, 0);
    ASSERT_LE(bounds.makespan.value, figures.makespan) << bounds.makespan.by << " in " << rounds;
    ASSERT_LE(bounds.span.value, figures.span) << bounds.span.by << " in " << rounds;
    ++rounds;
  }
}

TEST(LowerBounds, OfManyMicrobatchesAddTheirWork) {
  // Costs of rank 1 are others, so that no closed form knows this step; rank 1 works 9 for each.
  SimulationOptions options{.memory_limit = 6};
  options.costs = simulated::costs("f=2,b=3,w=1,comm=1");
  options.costs.set({.scope = {.rank = 1}, .key = CostSetting::Key::Forward, .value = 5});
  const auto bound_of = [&](std::int32_t microbatches) {
    return lower_bounds(*problem_of({.ranks = 3, .microbatches = microbatches}, options), 0)
        .makespan.value;
  };
  const double few = bound_of(24);
  EXPECT_NEAR(bound_of(25), few + 9, 1e-6);
  EXPECT_NEAR(bound_of(1'000), few + 9 * 976, 1e-6);
}

}  // namespace
}  // namespace capo::optimise
