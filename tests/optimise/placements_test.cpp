#include "optimise/placements.h"

#include "optimise/construct.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace capo::optimise {
namespace {

struct Step {
  Problem problem;
  SimulationOptions options;
};

Step step_of(std::int32_t ranks, std::int32_t chunks, const std::vector<std::string>& costs) {
  SimulationOptions options;
  for (const std::string& text : costs) {
    const auto settings = read_costs(text);
    EXPECT_TRUE(settings.has_value());
    for (const CostSetting& setting : *settings) options.costs.set(setting);
  }
  const auto problem = problem_of({.ranks = ranks, .chunks = chunks, .microbatches = 3}, options);
  EXPECT_TRUE(problem.has_value());
  return {.problem = *problem, .options = options};
}

RankCosts costs_of_ranks(std::int32_t ranks, std::int32_t chunks,
                         const std::vector<std::string>& costs) {
  const Step step = step_of(ranks, chunks, costs);
  return rank_costs_of(step.problem, step.options.costs);
}

TEST(Placements, AreOneIfRanksThatAreAlikeChangePlaces) {
  const auto same = alike(costs_of_ranks(3, 2, {"f=2,comm=1"}));
  EXPECT_EQ(same, (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(standing_for({2, 0, 1, 1, 0, 2}, same), (Placement{0, 1, 2, 2, 1, 0}));

  const auto slow = alike(costs_of_ranks(3, 2, {"f=2", "r1:f=3"}));
  EXPECT_EQ(slow, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(standing_for({2, 1, 0, 0, 1, 2}, slow), (Placement{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(standing_for({1, 2, 0, 0, 2, 1}, slow), (Placement{1, 0, 2, 2, 0, 1}));

  const auto linked = alike(costs_of_ranks(4, 1, {"f=2,comm=1", "r0-r1:comm=5"}));
  EXPECT_EQ(linked, (std::vector<std::uint32_t>{0, 0, 2, 2}));
  const auto one_way = alike(costs_of_ranks(3, 1, {"f=2,comm=1", "r0>r1:comm=5"}));
  EXPECT_EQ(one_way, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Placements, AreCountedOnce) {
  const auto count = [](const RankCosts& costs) {
    return all_placements(costs, 5000, alike(costs))->size();
  };
  EXPECT_EQ(count(costs_of_ranks(2, 2, {"f=1"})), 3U) << "of 6, with ranks that are alike";
  EXPECT_EQ(count(costs_of_ranks(2, 2, {"r0:f=2"})), 6U);
  EXPECT_EQ(count(costs_of_ranks(4, 2, {"f=1"})), 105U) << "8! / 2^4 / 4!";
  EXPECT_EQ(count(costs_of_ranks(3, 2, {"r0:f=2"})), 45U) << "6! / 2^3 / 2!";
  EXPECT_EQ(count(costs_of_ranks(5, 1, {"f=1"})), 1U);
  const RankCosts even = costs_of_ranks(4, 2, {"f=1"});
  EXPECT_FALSE(all_placements(even, 104, alike(even)).has_value());

  const RankCosts costs = costs_of_ranks(3, 2, {"r0:f=2"});
  const auto first = alike(costs);
  std::set<Placement> known;
  const auto all = all_placements(costs, 100, alike(costs));
  for (const Placement& each : *all) {
    EXPECT_EQ(standing_for(each, first), each);
    EXPECT_TRUE(known.insert(each).second);
  }
  for (const Placement& shape : shapes(costs)) EXPECT_TRUE(known.contains(shape));
  Chance chance(1);
  Placement at = *known.begin();
  for (int i = 0; i < 1000; ++i) {
    at = standing_for(neighbour_of(at, 3, chance), first);
    ASSERT_TRUE(known.contains(at));
    known.insert(at);
  }
}

TEST(Placements, AreFramesByTheirNames) {
  const Frame frame{.ranks = 3, .chunks = 2, .microbatches = 1};
  EXPECT_EQ(words_for(with_placement(frame, {0, 1, 2, 0, 1, 2})), "loop");
  EXPECT_EQ(words_for(with_placement(frame, {0, 1, 2, 2, 1, 0})), "v");
  const Frame custom = with_placement(frame, {0, 2, 1, 1, 0, 2});
  EXPECT_EQ(words_for(custom), "rank 0 stages 0,4; rank 1 stages 2,3; rank 2 stages 1,5");
  EXPECT_EQ(placement_of(custom), (Placement{0, 2, 1, 1, 0, 2}));
}

TEST(Placements, TakeTheCostsOfTheChunksTheyPutStagesOn) {
  const Step step = step_of(2, 2, {"f=1,b=2", "r1:f=5", "c2:w=7", "r0>r1:comm=3"});
  const auto problem = problem_of(with_placement(step.problem.frame, {1, 0, 0, 1}), step.options);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->series[series_of(0, Half::Forward)].takes, 5) << "chunk 1 of rank 1";
  EXPECT_EQ(problem->series[series_of(2, Half::Weight)].takes, 7) << "chunk 2 of rank 0";
  EXPECT_EQ(problem->series[series_of(1, Half::Forward)].lag, 0) << "from rank 1 to rank 0";
  EXPECT_EQ(problem->series[series_of(3, Half::Forward)].lag, 3) << "from rank 0 to rank 1";
  const RankCosts costs = rank_costs_of(*problem, step.options.costs);
  EXPECT_EQ(costs.chunk(1, 0).takes[as_index(Half::Forward)], 5);
  EXPECT_EQ(costs.chunk(0, 1).takes[as_index(Half::Weight)], 7);
  EXPECT_EQ(costs.link(0, 1), 3);
}

// Orders by chance under placements by chance are no better than the bound of any.
TEST(BoundsOfAnyPlacement, AreNotAboveAnythingThatRuns) {
  std::mt19937 engine(7);
  int reached = 0;
  for (int round = 0; round < 400; ++round) {
    ByChance step = step_by_chance(engine);
    if (step.frame.topology == Topology::Bidirectional) continue;
    step.options.memory_limit = 1 + 0.25 * below(engine, 12);
    const auto base = problem_of(step.frame, step.options);
    ASSERT_TRUE(base.has_value());
    const RankCosts costs = rank_costs_of(*base, step.options.costs);
    const LowerBounds bounds = bounds_of_any_placement(costs);
    Placement placement = placement_of(step.frame);
    std::shuffle(placement.begin(), placement.end(), engine);
    const auto problem = problem_of(with_placement(step.frame, placement), step.options);
    ASSERT_TRUE(problem.has_value());
    for (const Rules& rules : rule_settings(*problem)) {
      const auto orders = construct(*problem, rules);
      ASSERT_TRUE(orders.has_value());
      const Figures figures = *evaluate(*problem, *orders);
      ASSERT_LE(bounds.makespan.value, figures.makespan * (1 + 1e-9)) << bounds.makespan.by;
      ASSERT_LE(bounds.span.value, figures.span * (1 + 1e-9)) << bounds.span.by;
      if (figures.makespan <= bounds.makespan.value * (1 + 1e-9)) ++reached;
    }
  }
  EXPECT_GT(reached, 100) << "it is no bound that is always far away";
}

// On a line of equal ranks the first one has its first backward when one microbatch was at the last
// rank and came back, and then three backwards and weight gradients.
TEST(BoundsOfAnyPlacement, CountWhatEveryPlacementHas) {
  const LowerBounds line = bounds_of_any_placement(costs_of_ranks(4, 1, {"f=1,b=2,w=3,comm=0.5"}));
  EXPECT_NEAR(line.makespan.value, (4 * 1 + 3 * 2 + 6 * 0.5) + 3 * (2 + 3), 1e-6);
  EXPECT_EQ(line.makespan.by, "any work");
  // Two ranks of which one is slow: it works for 18 of three microbatches, in front or behind.
  const LowerBounds uneven = bounds_of_any_placement(costs_of_ranks(2, 1, {"f=1", "r1:f=4"}));
  EXPECT_GE(uneven.makespan.value, 18 * (1 - 1e-9));
  // A way to all ranks has two slow links at least.
  const LowerBounds links =
      bounds_of_any_placement(costs_of_ranks(3, 1, {"comm=10", "r0-r1:comm=1"}));
  EXPECT_NEAR(links.makespan.value, (3 * 1 + 11) + (2 * 1 + 11) + 3 * 2, 1e-6);
}

}  // namespace
}  // namespace capo::optimise
