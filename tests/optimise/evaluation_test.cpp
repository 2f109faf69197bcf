#include "optimise/evaluation.h"

#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace capo::optimise {
namespace {

std::unique_ptr<simulated::Simulated> simulate(const Problem& problem, const Orders& orders,
                                               const SimulationOptions& options) {
  return simulated::simulate_input(
      {.form = Form::OrderFile, .schedule = schedule_of(problem, orders)}, options);
}

Problem two_ranks(std::optional<double> limit = std::nullopt) {
  SimulationOptions options{.memory_limit = limit};
  options.costs = simulated::costs("f=2,b=3,w=1,comm=1");
  const auto problem = problem_of({.ranks = 2, .microbatches = 2}, options);
  EXPECT_TRUE(problem.has_value());
  return *problem;
}

constexpr SeriesId kF0 = 0, kB0 = 1, kW0 = 2, kF1 = 3, kB1 = 4, kW1 = 5;

TEST(Evaluation, AddsUpWhatTasksWaitFor) {
  const Orders orders{{kF0, kF0, kB0, kW0, kB0, kW0}, {kF1, kB1, kW1, kF1, kB1, kW1}};
  const auto figures = evaluate(two_ranks(), orders);
  ASSERT_TRUE(figures.has_value());
  // Rank 1: F 3-5, B 5-8, W 8-9, F 9-11, B 11-14, W 14-15. Rank 0: B 9-12, W 12-13, B 15-18, W -19.
  EXPECT_EQ(*figures, (Figures{.makespan = 19, .span = 19, .peaks = {2, 1}}));
}

TEST(Evaluation, RefusesOrdersThatDoNotRun) {
  const Problem problem = two_ranks();
  const std::vector<SeriesId> fine{kF0, kF0, kB0, kW0, kB0, kW0};
  EXPECT_EQ(evaluate(problem, {fine, {kF1, kB1, kW1, kF1, kB1}}), std::nullopt) << "one lacks";
  EXPECT_EQ(evaluate(problem, {fine, {kF1, kB1, kB1, kF1, kW1, kW1}}), std::nullopt) << "B first";
  EXPECT_EQ(evaluate(problem, {fine, {kF1, kF1, kF1, kB1, kB1, kW1}}), std::nullopt) << "one more";
  // Rank 0 runs its second forward behind its second backward's input, rank 1 the other way round.
  EXPECT_EQ(evaluate(problem, {{kF0, kB0, kW0, kF0, kB0, kW0}, {kF1, kF1, kB1, kB1, kW1, kW1}}),
            std::nullopt)
      << "they wait for each other";
}

TEST(Evaluation, ShiftsNothingPastWhatItWaitsForNorBeyondMemory) {
  const Problem problem = two_ranks(2);
  const Orders orders{{kF0, kF0, kB0, kW0, kB0, kW0}, {kF1, kB1, kW1, kF1, kB1, kW1}};
  Evaluation evaluation(problem, orders);
  EXPECT_FALSE(evaluation.shift(0, 0, 1)) << "another forward of the stage";
  EXPECT_FALSE(evaluation.shift(0, 1, 4)) << "its own backward";
  EXPECT_FALSE(evaluation.shift(1, 4, 3)) << "its own forward";
  EXPECT_EQ(evaluation.orders(), orders);

  const Orders one_by_one{{kF0, kB0, kW0, kF0, kB0, kW0}, {kF1, kB1, kW1, kF1, kB1, kW1}};
  const Problem tight = two_ranks(1);
  Evaluation full(tight, one_by_one);
  EXPECT_FALSE(full.shift(0, 3, 2)) << "the first microbatch is still held";
  EXPECT_TRUE(Evaluation(problem, one_by_one).shift(0, 3, 2));
}

TEST(Evaluation, FindsOrdersThatWouldWaitForEachOther) {
  const Problem problem = two_ranks();
  const Orders orders{{kF0, kF0, kB0, kW0, kB0, kW0}, {kF1, kF1, kB1, kW1, kB1, kW1}};
  Evaluation evaluation(problem, orders);
  EXPECT_FALSE(evaluation.shift(0, 1, 2)) << "rank 1 runs its second forward before its backward";
  EXPECT_FALSE(evaluation.shift(0, 2, 1)) << "the same the other way round";
  EXPECT_TRUE(evaluation.shift(1, 1, 2));
  EXPECT_TRUE(evaluation.shift(0, 1, 2)) << "now it runs it behind";
}

// The times of both are equal to the last bit, since they are added up in the same order.
TEST(Evaluation, GivesTheTimesOfTheSimulator) {
  int rows = 0;
  for (const auto& row : golden::published_rows("schedule")) {
    if (row.value("overlap_factor", 1.0) != 1 || row.at("p").get<int>() > 8) continue;
    const auto request = golden::request_of(row);
    const auto schedule = schedules::schedule_named(request);
    ASSERT_TRUE(schedule.has_value());
    SCOPED_TRACE(row.at("id").get<std::string>());
    const Problem problem = problem_of_row(row);
    const auto orders = orders_of(problem, *schedule);
    ASSERT_TRUE(orders.has_value()) << orders.error();
    const auto figures = evaluate(problem, *orders);
    ASSERT_TRUE(figures.has_value());
    const auto simulated = simulate(problem, *orders, golden::options_of(row));
    ASSERT_NE(simulated->simulation, nullptr) << simulated->why;
    EXPECT_EQ(figures->makespan, (*simulated)->makespan());
    EXPECT_EQ(figures->span, (*simulated)->span());
    ASSERT_EQ(figures->peaks.size(), (*simulated)->peaks().size());
    for (std::size_t rank = 0; rank < figures->peaks.size(); ++rank) {
      EXPECT_EQ(figures->peaks[rank], (*simulated)->peaks()[rank].held) << "rank " << rank;
    }
    ++rows;
  }
  fmt::print("{} rows\n", rows);
  EXPECT_GT(rows, 200);
}

// A million moves by chance: a shift is refused or comes to what evaluate() says, and taken back it
// leaves what there was.
TEST(Evaluation, AfterAShiftEqualsEvaluationFromNothing) {
  std::mt19937 engine(34);
  std::size_t shifts = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 3400; ++round) {
    Problem problem = problem_by_chance(engine);
    const Orders first = all_forwards_first(problem);
    const double most = evaluate(problem, first)->highest_peak();
    if (round % 2 == 0) problem.memory_limit = most;
    Evaluation evaluation(problem, first);
    for (int i = 0; i < 300; ++i) {
      const std::size_t rank = below(engine, first.size());
      const auto length = static_cast<std::uint32_t>(first[rank].size());
      const std::uint32_t from = below(engine, length);
      const std::uint32_t to = i % 3 == 0 ? below(engine, length) : std::min(from + 1, length - 1);
      const Orders before = evaluation.orders();
      const Figures figures = evaluation.figures();
      if (!evaluation.shift(rank, from, to)) {
        ++refused;
        ASSERT_EQ(evaluation.orders(), before);
        Orders shifted = before;
        const SeriesId series = shifted[rank][from];
        shifted[rank].erase(shifted[rank].begin() + from);
        shifted[rank].insert(shifted[rank].begin() + to, series);
        const auto would = evaluate(problem, shifted);
        const bool possible = would && fits(problem, *would);
        const bool passes_series =
            std::count(before[rank].begin() + std::min(from, to),
                       before[rank].begin() + std::max(from, to) + 1, series) > 1;
        EXPECT_TRUE(!possible || passes_series || from == to);
        continue;
      }
      ++shifts;
      const auto now = evaluate(problem, evaluation.orders());
      ASSERT_TRUE(now.has_value());
      ASSERT_EQ(evaluation.figures(), *now);
      ASSERT_TRUE(fits(problem, *now));
      if (i % 4 != 0) continue;
      evaluation.undo();
      ASSERT_EQ(evaluation.orders(), before);
      ASSERT_EQ(evaluation.figures(), figures);
    }
  }
  fmt::print("{} shifts, {} refused\n", shifts, refused);
  EXPECT_GT(shifts, 170'000U);
  EXPECT_GT(refused, 40'000U);
}

}  // namespace
}  // namespace capo::optimise
