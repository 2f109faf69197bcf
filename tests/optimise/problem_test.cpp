#include "optimise/problem.h"

#include "optimise/evaluation.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <string>

namespace capo::optimise {
namespace {

Result<Problem, std::string> problem_with(const Frame& frame, const std::string& costs) {
  SimulationOptions options;
  options.costs = simulated::costs(costs);
  return problem_of(frame, options);
}

TEST(Problem, TakesTimesOfTheSimulator) {
  SimulationOptions options;
  options.costs = simulated::costs("f=4,b=6,w=2", "r0:f=8", "c2:w=5", "r1>r0:comm=3");
  options.costs.per = CostPer::Rank;
  options.memory = MemoryChange{.forward = 1, .backward = -0.5, .weight = -0.5};
  const auto problem = problem_of({.ranks = 2, .chunks = 2, .microbatches = 3}, options);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->series[series_of(0, Half::Forward)].takes, 4) << "half of 8 on rank 0";
  EXPECT_EQ(problem->series[series_of(1, Half::Forward)].takes, 2);
  EXPECT_EQ(problem->series[series_of(2, Half::Weight)].takes, 5) << "a chunk's is undivided";
  EXPECT_EQ(problem->series[series_of(2, Half::Forward)].lag, 3) << "from rank 1 to rank 0";
  EXPECT_EQ(problem->series[series_of(1, Half::Forward)].lag, 0);
  EXPECT_EQ(problem->series[series_of(3, Half::Forward)].holds, 0.5);
  EXPECT_EQ(problem->series[series_of(3, Half::Backward)].holds, -0.25);
}

TEST(Problem, TakesTimesAsTheyAreStatedOfDevicesThatNeverRest) {
  Model model;
  model.modules.list = {
      {.name = "m", .cost = {.forward = 2, .backward = 3, .weight = 1, .rest = 0.5}}};
  model.modules.layers = {{{0}}, {{0}}};
  SimulationOptions options;
  options.costs = *costs_of(model);
  const auto problem = problem_of({.ranks = 2, .microbatches = 3}, options);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->series[series_of(0, Half::Forward)].takes, 2);
  EXPECT_EQ(problem->series[series_of(1, Half::Backward)].takes, 3);
}

TEST(Problem, KnowsWhatWaitsOnOneRankAndOverRanks) {
  const auto v = problem_with({.ranks = 2, .chunks = 2, .topology = Topology::V}, "f=1");
  ASSERT_TRUE(v.has_value());
  // Stages 0, 1 go down the ranks and 2, 3 back: 1 and 2 are both on rank 1.
  const SeriesId turn = series_of(2, Half::Forward);
  EXPECT_EQ(v->series[turn].waits_for, kNoSeries);
  EXPECT_EQ(v->series[turn].behind, std::vector{series_of(1, Half::Forward)});
  EXPECT_EQ(v->series[series_of(3, Half::Forward)].waits_for, turn);
  EXPECT_EQ(v->series[series_of(0, Half::Backward)].waits_for, series_of(1, Half::Backward));

  const auto two =
      problem_with({.ranks = 2, .chunks = 2, .topology = Topology::Bidirectional}, "f=1");
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->series[series_of(2, Half::Forward)].waits_for, kNoSeries) << "a pipeline begins";
  EXPECT_EQ(two->series[series_of(2, Half::Forward)].rank, 1);
}

TEST(Problem, RefusesWhatItDoesNotHave) {
  const auto why = [](const Frame& frame, const std::string& costs) {
    const auto problem = problem_with(frame, costs);
    return problem ? std::string() : problem.error();
  };
  EXPECT_EQ(why({.ranks = 2, .chunks = 3, .topology = Topology::V}, "f=1"),
            "a V needs an even number of chunks a rank");
  EXPECT_EQ(why({.ranks = 2, .chunks = 3, .topology = Topology::Bidirectional}, "f=1"),
            "two pipelines need two chunks a rank");
  EXPECT_EQ(why({.ranks = 2, .topology = Topology::Custom}, "f=1"),
            "2 stages are not placed on 1 chunks of each of 2 ranks");
  EXPECT_EQ(why({.ranks = 2, .topology = Topology::Custom, .stages = {{0}, {0}}}, "f=1"),
            "2 stages are not placed on 1 chunks of each of 2 ranks");
  EXPECT_EQ(why({.ranks = 1, .chunks = 2, .topology = Topology::Custom, .stages = {{1, 0}}}, "f=1"),
            "chunks of a rank are searched in the order of their stages");
  EXPECT_EQ(why({.ranks = 2, .topology = Topology::Chain}, "f=1"),
            "orders are searched for the placements loop, v, bidirectional and custom");
  EXPECT_EQ(why({.ranks = 2}, "slowdown=1.2"),
            "orders are searched without composites and slowdown: `overlap` and `slowdown` have no "
            "use");
  EXPECT_EQ(why({.ranks = 2}, "rest=0.1"),
            "orders are searched for tasks that take as long as stated: `rest` has no use");
  EXPECT_EQ(why({.ranks = 2}, "fuse=0.4"),
            "each weight gradient is a call of its own: `fuse` has no use without --fuse-w");
  EXPECT_EQ(why({.ranks = 2, .microbatches = 0}, "f=1"),
            "there is at least one rank, one chunk and one microbatch");
  EXPECT_EQ(why({.ranks = 1 << 14, .microbatches = 1 << 14}, "f=1"),
            "there are 805306368 tasks, and no more than 268435456 are searched");
  EXPECT_EQ(why({.ranks = 2}, "fuse=1"), "");
}

TEST(Problem, TakesWholeBackwardsApart) {
  const auto problem = problem_with({.ranks = 2, .microbatches = 2}, "f=1");
  const auto schedule = schedules::schedule_named({.name = "1f1b", .ranks = 2, .microbatches = 2});
  const auto orders = orders_of(*problem, *schedule);
  ASSERT_TRUE(orders.has_value());
  EXPECT_EQ(*orders, (Orders{{0, 0, 1, 2, 1, 2}, {3, 4, 5, 3, 4, 5}}));
  EXPECT_EQ(*orders_of(*problem, schedule_of(*problem, *orders)), *orders);
}

TEST(Problem, RefusesOrdersOfAnotherFrame) {
  const auto problem = problem_with({.ranks = 2, .chunks = 2, .microbatches = 4}, "f=1");
  const auto why = [&](const schedules::Request& request) {
    return orders_of(*problem, *schedules::schedule_named(request)).error();
  };
  EXPECT_EQ(why({.name = "1f1b", .ranks = 3, .microbatches = 4}), "it has 3 ranks, not 2");
  EXPECT_EQ(why({.name = "1f1b", .ranks = 2, .microbatches = 4}), "rank 0 has 1 chunks, not 2");
  EXPECT_EQ(why({.name = "zbv", .ranks = 2, .microbatches = 4}),
            "its stages on rank 0 are not those of the placement loop");
  EXPECT_EQ(why({.name = "looped-bfs", .ranks = 2, .microbatches = 6}),
            "rank 0 runs chunk 1 with 6 microbatches, not 4");
}

}  // namespace
}  // namespace capo::optimise
