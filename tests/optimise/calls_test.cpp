#include "optimise/calls.h"

#include "core/order/fuse_weights.h"
#include "optimise/bounds.h"
#include "optimise/search.h"
#include "optimise/tails.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace capo::optimise {
namespace {

SimulationOptions options_at(const std::string& costs) {
  SimulationOptions options;
  options.costs = simulated::costs(costs);
  return options;
}

Problem fused(const Frame& frame, const SimulationOptions& options) {
  const auto problem = problem_of(frame, options);
  EXPECT_TRUE(problem.has_value()) << (problem ? "" : problem.error());
  return *problem;
}

Problem one_rank(std::int32_t microbatches, std::int32_t in_call) {
  return fused({.ranks = 1, .microbatches = microbatches, .weights_in_call = in_call},
               options_at("f=1,b=1,w=3,fuse=0.25"));
}

std::string why_not(const Frame& frame, const SimulationOptions& options) {
  const auto problem = problem_of(frame, options);
  return problem ? "" : problem.error();
}

// Shifts by chance, most of them near.
struct Move {
  std::size_t rank = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

Move move_by_chance(std::mt19937& engine, const Problem& problem) {
  const std::uint32_t length = problem.tasks_of_rank();
  const std::uint32_t from = below(engine, length);
  const std::uint32_t distance = 1 + below(engine, below(engine, 3) == 0 ? length : 4);
  return {.rank = below(engine, problem.of_rank.size()),
          .from = from,
          .to = below(engine, 2) == 0 ? from - std::min(from, distance)
                                      : std::min(from + distance, length - 1)};
}

TEST(Calls, AreFilledOneAfterTheOther) {
  const Problem problem = one_rank(5, 3);
  // 5 forwards, 5 backwards, a call of 3 in 3 + 2 * 0.75 and one of 2 in 3 + 0.75.
  EXPECT_EQ(evaluate(problem, all_forwards_first(problem))->makespan, 10 + 4.5 + 3.75);
  // Series 0, 1 and 2 are F, B and W.
  const Orders apart{{0, 0, 1, 2, 1, 2}};
  EXPECT_EQ(evaluate(one_rank(2, 2), apart)->makespan, 10) << "a backward parts them";
  const Orders beside{{0, 1, 0, 1, 2, 2}};
  EXPECT_EQ(evaluate(one_rank(2, 2), beside)->makespan, 7.75);
}

TEST(Calls, AreOfOneChunk) {
  const Problem problem = fused({.ranks = 1, .chunks = 2, .microbatches = 2, .weights_in_call = 4},
                                options_at("f=2,b=2,w=6,fuse=0.5"));
  const Orders turns{{0, 0, 3, 3, 4, 4, 1, 1, 5, 5, 2, 2}};
  const Orders mixed{{0, 0, 3, 3, 4, 4, 1, 1, 5, 2, 5, 2}};
  EXPECT_EQ(evaluate(problem, turns)->makespan, 16 + 2 * 9);
  EXPECT_EQ(evaluate(problem, mixed)->makespan, 16 + 4 * 6);
}

TEST(Calls, AreRefusedWhereTheyHaveNoUse) {
  const SimulationOptions cheap = options_at("f=1,b=1,w=3,fuse=0.25");
  const Frame frame{.ranks = 2, .microbatches = 4, .weights_in_call = 2};
  EXPECT_EQ(why_not(frame, cheap), "");
  EXPECT_NE(why_not({.ranks = 2, .microbatches = 4}, cheap).find("without --fuse-w"),
            std::string::npos);
  EXPECT_NE(why_not(frame, options_at("f=1,b=1,w=3")).find("--cost fuse=0.35"), std::string::npos);
  EXPECT_NE(why_not(frame, options_at("w=3,fuse=1.5")).find("as long as the first"),
            std::string::npos);
  EXPECT_NE(why_not({.ranks = 2, .microbatches = 1, .weights_in_call = 2}, cheap)
                .find("has one microbatch"),
            std::string::npos);
}

// The times and peaks of `capo simulate --fuse-w` to the last bit, of orders that shifts by chance
// lead to; each shift comes to what evaluate() says, and taken back leaves what there was.
TEST(Calls, GiveTheTimesOfTheSimulator) {
  std::mt19937 engine(7);
  std::size_t shifts = 0;
  std::int64_t calls = 0;
  for (int round = 0; round < 600; ++round) {
    const ByChance step = fused_step_by_chance(engine);
    const Problem problem = fused(step.frame, step.options);
    Evaluation evaluation(problem, all_forwards_first(problem));
    for (int i = 0; i < 200; ++i) {
      const auto [rank, from, to] = move_by_chance(engine, problem);
      const Orders before = evaluation.orders();
      const Figures figures = evaluation.figures();
      if (!evaluation.shift(rank, from, to)) continue;
      ++shifts;
      ASSERT_EQ(evaluation.figures(), *evaluate(problem, evaluation.orders()));
      if (i % 3 != 0) continue;
      evaluation.undo();
      ASSERT_EQ(evaluation.orders(), before);
      ASSERT_EQ(evaluation.figures(), figures);
    }
    Input input{.form = Form::OrderFile, .schedule = schedule_of(problem, evaluation.orders())};
    calls += fuse_weights(input.schedule, step.frame.weights_in_call).calls;
    const auto simulated = simulated::simulate_input(std::move(input), step.options);
    ASSERT_NE(simulated->simulation, nullptr) << simulated->why;
    const Figures figures = evaluation.figures();
    EXPECT_EQ(figures.makespan, (*simulated)->makespan());
    EXPECT_EQ(figures.span, (*simulated)->span());
    for (std::size_t rank = 0; rank < figures.peaks.size(); ++rank) {
      EXPECT_EQ(figures.peaks[rank], (*simulated)->peaks()[rank].held) << "rank " << rank;
    }
  }
  fmt::print("{} shifts, {} calls\n", shifts, calls);
  EXPECT_GT(shifts, 10'000U);
  EXPECT_GT(calls, 500);
}

TEST(Calls, AreForeseen) {
  std::mt19937 engine(8);
  int possible = 0;
  int exact = 0;
  for (int round = 0; round < 600; ++round) {
    const ByChance step = fused_step_by_chance(engine);
    const Problem problem = fused(step.frame, step.options);
    Evaluation evaluation(problem, all_forwards_first(problem));
    const auto objective = round % 2 == 0 ? Objective::Makespan : Objective::Span;
    Tails tails(problem, evaluation, objective);
    for (int i = 0; i < 200; ++i) {
      const auto [rank, from, to] = move_by_chance(engine, problem);
      if (to == from) continue;
      const auto objective_now = [&] {
        return objective == Objective::Makespan ? evaluation.makespan() : evaluation.span();
      };
      const double before = objective_now();
      const auto foreseen = tails.foresee(rank, from, to, before);
      if (!evaluation.shift(rank, from, to)) continue;
      ++possible;
      if (foreseen.exact) {
        ++exact;
        ASSERT_TRUE(golden::equal(foreseen.value, objective_now()))
            << foreseen.value << " and not " << objective_now() << ", before " << before;
      }
      if (objective_now() > before && below(engine, 8) != 0) {
        evaluation.undo();
        continue;
      }
      tails.update(rank, from, to);
    }
    const Tails anew(problem, evaluation, objective);
    for (TaskNumber task = 0; task < problem.tasks(); ++task) {
      ASSERT_EQ(tails.of(task), anew.of(task));
    }
  }
  fmt::print("{} of {} shifts are foreseen\n", exact, possible);
  EXPECT_GT(possible, 10'000);
  EXPECT_GT(exact, possible / 2);
}

// A found order comes to what the simulator says, at least the bound, and is better than orders
// that were searched without calls and are put into calls then.
TEST(Calls, AreSearchedTogetherWithTheOrder) {
  std::mt19937 engine(9);
  int better = 0;
  for (int round = 0; round < 30; ++round) {
    ByChance step = fused_step_by_chance(engine);
    step.options.memory_limit = step.frame.chunks * 2;
    SCOPED_TRACE(round);
    const Problem problem = fused(step.frame, step.options);
    const auto objective = round % 2 == 0 ? Objective::Makespan : Objective::Span;
    const LowerBounds bounds = lower_bounds(problem, 300'000);
    const SearchOptions options{
        .objective = objective,
        .bound = (objective == Objective::Makespan ? bounds.makespan : bounds.span).value,
        .moves = 60'000};
    const auto none = [] { return std::vector<Start>(); };
    const auto found = search(problem, none, options, [](const Found&) {});
    ASSERT_TRUE(found.has_value());
    (void)verified(problem, found->orders, found->figures, step.options);
    const double value = value_of(found->figures, objective);
    EXPECT_GE(value, options.bound);

    Problem alone = problem;
    alone.frame.weights_in_call = 1;
    const auto order =
        search(alone, none, {.objective = objective, .moves = 60'000}, [](const Found&) {});
    ASSERT_TRUE(order.has_value());
    const double then = value_of(*evaluate(problem, order->orders), objective);
    EXPECT_LE(value, then * (1 + 1e-12));
    if (value < then * (1 - 1e-9)) ++better;
  }
  fmt::print("{} of 30 are better than orders that are searched first\n", better);
  EXPECT_GT(better, 10);
}

// With memory for two microbatches no call has three weight gradients.
TEST(Calls, CountInBoundsAsFarAsTheyFit) {
  SimulationOptions options = options_at("f=1,b=1,w=4,fuse=0.25");
  const Frame frame{.ranks = 1, .microbatches = 8, .weights_in_call = 4};
  const auto bound = [&] { return lower_bounds(fused(frame, options)).makespan.value; };
  EXPECT_TRUE(golden::equal(bound(), 16 + 2 * 7.0));
  options.memory_limit = 2;
  EXPECT_TRUE(golden::equal(bound(), 16 + 4 * 5.0));
  const Problem problem = fused(frame, options);
  const Orders pairs{{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}};
  EXPECT_EQ(evaluate(problem, pairs)->makespan, 36) << "which it meets";
}

// Weight gradients behind any task fill calls of their own, so that each counts with its share of
// the best call: of no order does the bound exceed what it comes to.
TEST(Calls, KeepBoundsBelowAllOrders) {
  std::mt19937 engine(10);
  double least = 1e300;
  for (int round = 0; round < 60; ++round) {
    ByChance step = fused_step_by_chance(engine);
    if (round % 2 == 0) step.options.memory_limit = 0.5 * (1 + round % 5) * step.frame.microbatches;
    const Problem problem = fused(step.frame, step.options);
    const auto first = construct(problem, {});
    if (!first) continue;
    const LowerBounds bounds = lower_bounds(problem, 300'000);
    Evaluation evaluation(problem, *first);
    for (int i = 0; i < 200; ++i) {
      const auto [rank, from, to] = move_by_chance(engine, problem);
      if (!evaluation.shift(rank, from, to)) continue;
      ASSERT_GE(evaluation.makespan(), bounds.makespan.value);
      ASSERT_GE(evaluation.span(), bounds.span.value);
      least = std::min(least, evaluation.makespan() / bounds.makespan.value);
    }
  }
  EXPECT_LT(least, 1.001) << "some order reaches it";
}

}  // namespace
}  // namespace capo::optimise
