#include "optimise/construct.h"

#include "optimise/evaluation.h"
#include "tests/optimise/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace capo::optimise {
namespace {

// One microbatch holds so much on a rank: in one of its chunks if there are two pipelines, else in
// all.
double most_held_by_one(const Problem& problem) {
  const double chunk = problem.series[series_of(0, Half::Forward)].holds;
  return problem.frame.topology == Topology::Bidirectional ? chunk : chunk * problem.frame.chunks;
}

// Under every rule, and within any limit that one microbatch fits.
TEST(Construct, MakesOrdersThatRunWithinTheLimit) {
  std::mt19937 engine(5);
  for (int round = 0; round < 60; ++round) {
    Problem problem = problem_by_chance(engine);
    const double one = most_held_by_one(problem);
    for (const double times : {1.0, 1.3, 2.0, 5.0, 100.0}) {
      problem.memory_limit = one * times;
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
      }
    }
    problem.memory_limit = one * 0.9;
    EXPECT_EQ(construct(problem, {}), std::nullopt);
  }
}

// One setting or another does, for all but one of the rows: transfers there take longer than half a
// weight gradient, and memory is that of 1F1B.
TEST(Construct, IsNotWorseThanZeroBubbleSearches) {
  int rows = 0;
  int not_worse = 0;
  for (const auto& row : golden::published_rows("schedule")) {
    const auto name = row.at("schedule").get<std::string>();
    if (!name.starts_with("zb-") || row.at("p").get<int>() > 8) continue;
    const Problem problem = problem_of_row(row);
    double best = 1e300;
    for (const Rules& rules : rule_settings(problem)) {
      const auto orders = construct(problem, rules);
      if (orders) best = std::min(best, evaluate(problem, *orders)->makespan);
    }
    ++rows;
    const double published = row.at("makespan").get<double>();
    if (best <= published * (1 + 1e-9)) ++not_worse;
  }
  fmt::print("{} of {} rows are not worse\n", not_worse, rows);
  EXPECT_GE(not_worse, rows - 1);
}

}  // namespace
}  // namespace capo::optimise
