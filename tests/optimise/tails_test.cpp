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

// Shifts near and far, of which most are foreseen; a shift that is not possible is foreseen as
// none.
TEST(Tails, ForeseeWhatAShiftComesTo) {
  std::mt19937 engine(4);
  int possible = 0;
  int exact = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = problem_by_chance(engine);
    Evaluation evaluation(problem, all_forwards_first(problem));
    const auto objective = round % 2 == 0 ? Objective::Makespan : Objective::Span;
    Tails tails(problem, evaluation, objective);
    for (int i = 0; i < 300; ++i) {
      const std::size_t rank = below(engine, problem.of_rank.size());
      const std::uint32_t from = below(engine, problem.tasks_of_rank());
      const std::uint32_t distance = 1 + below(engine, i % 10 == 0 ? 12 : 3);
      const std::uint32_t to = below(engine, 2) == 0
                                   ? from - std::min(from, distance)
                                   : std::min(from + distance, problem.tasks_of_rank() - 1);
      if (to == from) continue;
      const double before = objective_of(evaluation, objective);
      const auto foreseen = tails.foresee(rank, from, to, before);
      if (!evaluation.shift(rank, from, to)) continue;
      ++possible;
      const double now = objective_of(evaluation, objective);
      if (foreseen.exact) {
        ++exact;
        ASSERT_TRUE(golden::equal(foreseen.value, now))
            << foreseen.value << " and not " << now << ", before " << before;
      }
      if (now > before && below(engine, 8) != 0) {
        evaluation.undo();
      } else {
        tails.update(rank, from, to);
      }
    }
  }
  fmt::print("{} of {} shifts are foreseen\n", exact, possible);
  EXPECT_GT(possible, 20'000);
  EXPECT_GT(exact, possible / 2);
}

}  // namespace
}  // namespace capo::optimise
