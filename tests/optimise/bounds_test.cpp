#include "optimise/bounds.h"

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

}  // namespace
}  // namespace capo::optimise
