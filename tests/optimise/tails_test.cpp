#include "optimise/tails.h"

#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace capo::optimise {
namespace {

double objective_of(const Evaluation& evaluation, Objective objective) {
  return objective == Objective::Makespan ? evaluation.makespan() : evaluation.span();
}

// Tails that were brought up to date are those of the same orders from nothing, and the longest way
// through all tasks of a rank is no longer than the objective, which some rank reaches.
TEST(Tails, AreBroughtUpToDate) {
  std::mt19937 engine(3);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = problem_by_chance(engine);
    Evaluation evaluation(problem, all_forwards_first(problem));
    const auto objective = round % 2 == 0 ? Objective::Makespan : Objective::Span;
    Tails tails(problem, evaluation, objective);
    for (int i = 0; i < 60; ++i) {
      const std::size_t rank = below(engine, problem.of_rank.size());
      const std::uint32_t from = below(engine, problem.tasks_of_rank());
      const std::uint32_t to = below(engine, problem.tasks_of_rank());
      if (!evaluation.shift(rank, from, to)) continue;
      tails.update(rank, from, to);
    }
    const Tails anew(problem, evaluation, objective);
    double longest = -1e300;
    for (TaskNumber task = 0; task < problem.tasks(); ++task) {
      ASSERT_EQ(tails.of(task), anew.of(task));
      const std::size_t rank = problem.series[evaluation.series_of(task)].rank;
      const double end = evaluation.end_at(rank, evaluation.position_of(task));
      longest = std::max(longest, end + tails.of(task));
    }
    EXPECT_TRUE(golden::equal(longest, objective_of(evaluation, objective)));
  }
}

// Mostly it is the objective itself, if that becomes longer.
TEST(Tails, GuessWhatAShiftComesTo) {
  std::mt19937 engine(4);
  int longer = 0;
  int right = 0;
  for (int round = 0; round < 60; ++round) {
    const Problem problem = problem_by_chance(engine);
    Evaluation evaluation(problem, all_forwards_first(problem));
    Tails tails(problem, evaluation, Objective::Makespan);
    for (int i = 0; i < 200; ++i) {
      const std::size_t rank = below(engine, problem.of_rank.size());
      const std::uint32_t from = below(engine, problem.tasks_of_rank());
      const std::uint32_t to = std::min(from + 1 + below(engine, 3), problem.tasks_of_rank() - 1);
      if (to == from) continue;
      const double before = evaluation.makespan();
      const double guess = tails.guess(rank, from, to);
      if (!evaluation.shift(rank, from, to)) continue;
      const double now = evaluation.makespan();
      if (now > before * (1 + 1e-9)) {
        ++longer;
        if (golden::equal(guess, now)) ++right;
        evaluation.undo();
      } else {
        tails.update(rank, from, to);
      }
    }
  }
  fmt::print("{} of {} guesses are right\n", right, longer);
  EXPECT_GT(longer, 500);
  EXPECT_GT(right, longer * 8 / 10);
}

}  // namespace
}  // namespace capo::optimise
