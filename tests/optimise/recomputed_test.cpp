// Problems in which chunks recompute: what is held in them, and what keeps to a limit.

#include "optimise/bounds.h"
#include "optimise/construct.h"
#include "optimise/exhaustive.h"
#include "optimise/search.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace capo::optimise {
namespace {

Problem recomputing(const Frame& frame, const std::string& chunks, MemoryChange memory,
                    std::optional<double> limit = std::nullopt) {
  SimulationOptions options{.memory = memory, .memory_limit = limit};
  options.costs = simulated::costs("f=2,b=3,w=1");
  options.costs.recomputed = *read_recomputed(chunks);
  const auto problem = problem_of(frame, options);
  EXPECT_TRUE(problem.has_value());
  return *problem;
}

TEST(RecomputedProblem, TakesTimesAndMemoryOfTheSimulator) {
  const Problem problem =
      recomputing({.ranks = 2, .microbatches = 3}, "r1",
                  {.forward = 1, .backward = -0.5, .weight = -0.5, .keep = 0.25});
  const auto series = [&](std::size_t stage, Half half) {
    return problem.series[series_of(stage, half)];
  };
  EXPECT_TRUE(problem.remakes());
  EXPECT_EQ(series(0, Half::Backward).takes, 3);
  EXPECT_EQ(series(0, Half::Forward).holds, 1);
  EXPECT_EQ(series(0, Half::Backward).during, 0);
  EXPECT_EQ(series(1, Half::Backward).takes, 3 + 2);
  EXPECT_EQ(series(1, Half::Forward).holds, 0.25);
  EXPECT_EQ(series(1, Half::Backward).during, 0.75);
  EXPECT_EQ(series(1, Half::Backward).holds, -0.5);

  // F F B W B W of rank 1: 0.25, 0.5, then 1.25 in the first backward.
  const Orders orders{{0, 0, 0, 1, 2, 1, 2, 1, 2}, {3, 3, 4, 5, 3, 4, 5, 4, 5}};
  EXPECT_EQ(evaluate(problem, orders)->peaks, (std::vector<double>{3, 1.25}));
}

TEST(RecomputedProblem, WithoutWhatIsMadeAgainHoldsNoMore) {
  const auto relaxed_with = [](double backward, double keep) {
    const Problem problem = relaxed(
        recomputing({.ranks = 1, .microbatches = 2}, "all",
                    {.forward = 1, .backward = backward, .weight = -1 - backward, .keep = keep}));
    EXPECT_FALSE(problem.remakes());
    return std::vector{problem.series[0].holds, problem.series[1].holds, problem.series[2].holds};
  };
  EXPECT_EQ(relaxed_with(-0.5, 0.25), (std::vector{0.25, 0.0, -0.25}));
  EXPECT_EQ(relaxed_with(-0.75, 0.5), (std::vector{0.5, -0.25, -0.25})) << "less is left than kept";
}

TEST(RecomputedProblem, ComesToWhatTheSimulatorSays) {
  std::mt19937 engine(21);
  for (int round = 0; round < 300; ++round) {
    const ByChance step = recomputed_step_by_chance(engine);
    const auto problem = problem_of(step.frame, step.options);
    ASSERT_TRUE(problem.has_value()) << problem.error();
    Evaluation evaluation(*problem, all_forwards_first(*problem));
    for (int i = 0; i < 200; ++i) {
      const std::size_t rank = below(engine, problem->of_rank.size());
      const std::uint32_t from = below(engine, problem->tasks_of_rank());
      evaluation.shift(rank, from, below(engine, problem->tasks_of_rank()));
    }
    const Orders orders = evaluation.orders();
    const auto figures = evaluate(*problem, orders);
    ASSERT_TRUE(figures.has_value());
    ASSERT_EQ(evaluation.figures(), *figures);
    // It ends the program unless the simulator comes to the same to the bit.
    EXPECT_EQ(verified(*problem, orders, *figures, step.options).ranks.size(), orders.size());
  }
}

// A shift is refused that would exceed the limit within a backward alone.
TEST(RecomputedProblem, ShiftsKeepToTheLimitWithinBackwards) {
  std::mt19937 engine(22);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    const ByChance step = recomputed_step_by_chance(engine);
    Problem problem = *problem_of(step.frame, step.options);
    problem.memory_limit = least_limit(problem) * (1 + 0.25 * below(engine, 6));
    const auto first = construct(problem, {});
    ASSERT_TRUE(first.has_value());
    Evaluation evaluation(problem, *first);
    for (int i = 0; i < 200; ++i) {
      const std::size_t rank = below(engine, problem.of_rank.size());
      const std::uint32_t from = below(engine, problem.tasks_of_rank());
      const bool shifted = evaluation.shift(rank, from, below(engine, problem.tasks_of_rank()));
      ASSERT_TRUE(fits(problem, evaluation.figures()));
      if (!shifted) {
        ++refused;
      } else if (i % 4 == 0) {
        evaluation.undo();
        ASSERT_EQ(evaluation.figures(), *evaluate(problem, evaluation.orders()));
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

// Under every rule, and within any limit that one microbatch fits.
TEST(RecomputedProblem, RulesKeepEveryLimitThatOneMicrobatchFits) {
  std::mt19937 engine(23);
  int made = 0;
  for (int round = 0; round < 80; ++round) {
    const ByChance step = recomputed_step_by_chance(engine);
    Problem problem = *problem_of(step.frame, step.options);
    const double one = least_limit(problem);
    for (const double times : {1.0, 1.15, 1.5, 2.0, 5.0, 100.0}) {
      problem.memory_limit = one * times;
      ASSERT_EQ(why_impossible(problem), std::nullopt);
      for (Rules rules : rule_settings(problem)) {
        if (below(engine, 2) == 0) {
          for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
            rules.shares.push_back(0.1 * (1 + below(engine, 10)));
          }
        }
        const auto orders = construct(problem, rules);
        ASSERT_TRUE(orders.has_value()) << round << " within " << times;
        const auto figures = evaluate(problem, *orders);
        ASSERT_TRUE(figures.has_value());
        ASSERT_TRUE(fits(problem, *figures)) << figures->highest_peak() << " > " << times * one;
        ++made;
      }
    }
    problem.memory_limit = one * 0.99;
    EXPECT_EQ(construct(problem, {}), std::nullopt);
    EXPECT_NE(why_impossible(problem), std::nullopt);
  }
  fmt::print("{} orders\n", made);
}

// A search of all orders finds nothing below a bound of it.
TEST(RecomputedProblem, BoundsAreNotAboveTheBest) {
  std::mt19937 engine(24);
  int problems = 0;
  int reached = 0;
  for (int round = 0; round < 400; ++round) {
    ByChance step = recomputed_step_by_chance(engine);
    step.frame.ranks = std::min(step.frame.ranks, 3);
    step.frame.microbatches = std::min(step.frame.microbatches, step.frame.chunks > 1 ? 2 : 3);
    auto problem = problem_of(step.frame, step.options);
    ASSERT_TRUE(problem.has_value());
    if (problem->tasks() > 30) continue;
    step.options.memory_limit = least_limit(*problem) * (1 + 0.3 * below(engine, 5));
    problem = problem_of(step.frame, step.options);
    for (const auto objective : {Objective::Makespan, Objective::Span}) {
      const Exhausted all = exhaust(*problem, objective, 1e6, 200'000);
      if (!all.better) continue;
      const auto figures = evaluate(*problem, *all.better);
      ASSERT_TRUE(figures && fits(*problem, *figures));
      const double value = value_of(*figures, objective);
      const double bound = bound_of(lower_bounds(*problem, 300'000), objective).value;
      ASSERT_LE(bound, value * (1 + 1e-9)) << round;
      ++problems;
      if (all.complete && reaches(value, bound)) ++reached;
    }
  }
  fmt::print("{} problems, {} bounds reached\n", problems, reached);
  EXPECT_GT(problems, 300);
  EXPECT_GT(reached, 100);
}

TEST(RecomputedProblem, AMemoryBoundCountsWhatIsMadeAgain) {
  const Problem problem = recomputing({.ranks = 3, .microbatches = 4}, "all",
                                      {.forward = 1, .backward = 0, .weight = -1, .keep = 0.5}, 1);
  const LowerBounds bounds = lower_bounds(problem, 0);
  // Rank 0 holds half of each for 6 of forwards and 15 of backwards, as much again for the 5 of its
  // own backward, and all for 1.
  EXPECT_EQ(bounds.span.by, "memory");
  EXPECT_NEAR(bounds.span.value, 4 * (0.5 * 21 + 0.5 * 5 + 1), 1e-6);
}

// With room for one that runs back, a weight gradient stands between two backwards.
TEST(RecomputedProblem, NarrowingKnowsWhenBackwardsHaveRoom) {
  const Problem problem =
      recomputing({.ranks = 2, .microbatches = 4}, "all",
                  {.forward = 1, .backward = 0, .weight = -1, .keep = 0.1}, 1.4);
  const double without = lower_bounds(relaxed(problem)).makespan.value;
  const LowerBounds bounds = lower_bounds(problem);
  EXPECT_EQ(bounds.makespan.by, "narrowing");
  EXPECT_GT(bounds.makespan.value, without * 1.01);
  const Exhausted all = exhaust(problem, Objective::Makespan, 1e6, 1'000'000);
  ASSERT_TRUE(all.complete && all.better);
  EXPECT_LE(bounds.makespan.value, evaluate(problem, *all.better)->makespan * (1 + 1e-9));
}

// The orders found within a limit are what the simulator makes of them, and better than without
// recomputing.
TEST(RecomputedProblem, SearchesWithinALimitThatNothingElseFits) {
  SimulationOptions options{.memory = MemoryChange{.keep = 0.1}, .memory_limit = 1.2};
  options.costs = simulated::costs("f=2,b=3,w=1");
  const auto held = problem_of({.ranks = 3, .microbatches = 6}, options);
  options.costs.recomputed = *read_recomputed("all");
  const auto again = problem_of({.ranks = 3, .microbatches = 6}, options);
  const SearchOptions how{.moves = 20'000, .exhaustive_tasks = 0};
  const auto none = [] { return std::vector<Start>{}; };
  const auto tell = [](const Found&) {};
  const auto one_by_one = search(*held, none, how, tell);
  const auto found = search(*again, none, how, tell);
  ASSERT_TRUE(one_by_one && found);
  EXPECT_LT(found->figures.makespan, one_by_one->figures.makespan);
  EXPECT_EQ(verified(*again, found->orders, found->figures, options).ranks.size(), 3U);
}

}  // namespace
}  // namespace capo::optimise
