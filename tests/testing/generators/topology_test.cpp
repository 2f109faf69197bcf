#include "testing/generators/topology.h"

#include "core/rules/check.h"
#include "testing/generators/executable_order.h"
#include "testing/representable.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace capo::testing {
namespace {

bool alike(Topology topology) {
  return topology == Topology::Loop || topology == Topology::V ||
         topology == Topology::Bidirectional;
}

// All forwards and all backwards of one microbatch, on every rank.
Schedule with_orders(Schedule placement) {
  placement.naming = Naming::Named;
  placement.microbatches = 1;
  for (RankOrder& rank : placement.ranks) {
    for (const Kind kind : {Kind::Forward, Kind::Backward}) {
      for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk)
        rank.order.push_back({.chunk = chunk, .microbatch = 0, .kind = kind});
    }
  }
  return in_executable_order(std::move(placement));
}

void expect_usable(const Schedule& placement) {
  EXPECT_EQ(unrepresentable(placement).value_or(""), "") << rc::toString(placement);
  const CheckResult result = check({.form = Form::OrderFile, .schedule = with_orders(placement)});
  EXPECT_EQ(result.verdict, Verdict::Accepted) << rc::toString(placement);
}

TEST(DrawnTopology, CanBeUsedAndSoCanWhatItShrinksTo) {
  for (const auto& shrinkable : sample_shrinkables(drawn_topology(), 200)) {
    expect_usable(shrinkable.value());
    auto shrinks = shrinkable.shrinks();
    for (auto smaller = shrinks.next(); smaller; smaller = shrinks.next())
      expect_usable(smaller->value());
  }
}

TEST(DrawnTopology, IsOfEverySizeAndTopologyEquallyOften) {
  const auto placements = sample(drawn_topology(), 6000);
  EXPECT_TRUE(are_even(parts(placements, [](const Schedule& one) { return one.topology; }),
                       std::vector(kEveryTopology.begin(), kEveryTopology.end())));
  EXPECT_TRUE(are_even(parts(placements, [](const Schedule& one) { return one.ranks.size(); }),
                       numbers<std::size_t>(1, 4)));
  std::vector<std::int32_t> apart;
  std::vector<std::int32_t> together;
  std::vector<std::int32_t> of_two_pipelines;
  for (const Schedule& one : placements) {
    auto& chunks = one.topology == Topology::Bidirectional ? of_two_pipelines
                   : alike(one.topology)                   ? together
                                                           : apart;
    for (const RankOrder& rank : one.ranks) {
      if (&rank == &one.ranks.front() || !alike(one.topology)) chunks.push_back(rank.chunks);
      EXPECT_TRUE(rank.chunks == one.ranks.front().chunks || !alike(one.topology));
      EXPECT_TRUE(rank.chunks_declared && rank.order.empty() && !rank.delay);
    }
  }
  EXPECT_TRUE(are_even(apart, numbers(1, 3)));
  EXPECT_TRUE(are_even(together, numbers(1, 3)));
  EXPECT_TRUE(are_even(of_two_pipelines, {2, 4}));
}

// Two ranks with one chunk and two have six permutations.
TEST(DrawnTopology, DealsOutCustomStagesInEveryWayEquallyOften) {
  std::vector<std::vector<std::int32_t>> stages;
  const auto draw = [](Dice& dice) {
    Schedule schedule{.topology = Topology::Custom};
    draw_placement(dice, schedule, [](RankOrder&) {});
    return schedule;
  };
  const auto custom = generator(draw, [](const Schedule&) { return std::vector<Schedule>(); });
  for (const Schedule& one : sample(custom, 60000)) {
    if (one.ranks.size() != 2 || one.ranks[0].chunks != 1 || one.ranks[1].chunks != 2) continue;
    const auto& second = one.ranks[1].stages;
    stages.push_back({one.ranks[0].stages[0], second[0], second[1]});
  }
  EXPECT_TRUE(are_even(stages, {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}));
}

TEST(DrawnTopology, ShrinksToOneRankWithOneChunkInAChain) {
  for (const auto& shrinkable : sample_shrinkables(drawn_topology(), 50)) {
    EXPECT_EQ(rc::toString(shrink_path(shrinkable).back()),
              "capo 1\nranks 1\nplacement chain\nrank 0 chunks 1\nrank 0:\n");
  }
}

TEST(ForgetRank, MovesTheStagesOfTheOthersUp) {
  Schedule schedule{.topology = Topology::Custom, .stages = 4};
  for (const std::vector<std::int32_t>& stages :
       {std::vector<std::int32_t>{3, 0}, std::vector<std::int32_t>{1},
        std::vector<std::int32_t>{2}})
    schedule.ranks.push_back(
        {.chunks = static_cast<std::int32_t>(stages.size()), .stages = stages});
  forget_rank(schedule, 1);
  ASSERT_EQ(schedule.ranks.size(), 2u);
  EXPECT_EQ(schedule.ranks[0].stages, (std::vector<std::int32_t>{2, 0}));
  EXPECT_EQ(schedule.ranks[1].stages, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(schedule.stages, 3);
}

}  // namespace
}  // namespace capo::testing
