#include "optimise/walk.h"

#include "optimise/construct.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace capo::optimise {
namespace {

const auto kNeverStopped = [] { return false; };

TEST(Chance, IsTheSameEverywhere) {
  // The first numbers of splitmix64 from 0, as its authors print them.
  Chance chance(0);
  EXPECT_EQ(chance.draw(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(chance.draw(), 0x6e789e6aa1b965f4U);
}

TEST(Walk, LeadsToWhatItSays) {
  std::mt19937 engine(11);
  int better = 0;
  for (int round = 0; round < 60; ++round) {
    Problem problem = problem_by_chance(engine);
    const Orders first = all_forwards_first(problem);
    const Figures begin = *evaluate(problem, first);
    problem.memory_limit = begin.highest_peak();
    const auto objective = round % 2 == 0 ? Objective::Makespan : Objective::Span;
    Walk walk(problem, first, objective, 3);
    walk.run(3000, kNeverStopped);
    const auto figures = evaluate(problem, walk.best_orders());
    ASSERT_TRUE(figures.has_value());
    EXPECT_TRUE(fits(problem, *figures));
    EXPECT_EQ(value_of(*figures, objective), walk.best());
    EXPECT_LE(walk.best(), value_of(begin, objective));
    if (walk.best() < value_of(begin, objective)) ++better;
  }
  EXPECT_GT(better, 30);
}

TEST(Walk, IsAFunctionOfItsSeed) {
  const Problem problem = problem_of_row(golden::published_rows("optimum").back());
  const auto walked = [&](std::uint64_t seed, int pieces) {
    Walk walk(problem, *construct(problem, {.eager_weights = true}), Objective::Makespan, seed);
    for (int i = 0; i < pieces; ++i) {
      walk.run(static_cast<std::uint64_t>(4096 / pieces), kNeverStopped);
    }
    return walk.best_orders();
  };
  EXPECT_EQ(walked(5, 1), walked(5, 1));
  EXPECT_EQ(walked(5, 1), walked(5, 64)) << "in whatever pieces";
}

TEST(Walk, StopsWhenItIsTold) {
  const Problem problem = problem_of_row(golden::published_rows("optimum").back());
  Walk walk(problem, *construct(problem, {}), Objective::Makespan, 1);
  int asked = 0;
  walk.run(std::uint64_t{1} << 60, [&] { return ++asked == 20; });
  EXPECT_EQ(asked, 20);
}

}  // namespace
}  // namespace capo::optimise
