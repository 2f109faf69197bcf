// A topology declared beside a schedule: taken where the schedule is silent, compared where it
// speaks.

#include "core/input/load.h"
#include "core/order/declare.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace capo {
namespace {

using Stages = std::vector<std::vector<std::int32_t>>;

// Two ranks of two chunks, with what is stated about their placement.
Schedule stating(const std::string& placement) {
  auto input = load(Source{.name = "test.order",
                           .text = "capo 1\nranks 2\nchunks 2\nmicrobatches 1\n" + placement +
                                   "rank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n"},
                    {.form = TextForm::OrderFile});
  if (!input) throw std::invalid_argument(input.error().refusal.finding.message);
  return std::move(input->schedule);
}

Stages stages_of(const Schedule& schedule) {
  Stages stages;
  for (const RankOrder& rank : schedule.ranks) stages.push_back(rank.stages);
  return stages;
}

const Stages kChain{{0, 1}, {2, 3}};
const Stages kLoop{{0, 2}, {1, 3}};
const Stages kV{{0, 3}, {1, 2}};

TEST(DeclareTopology, WhereNothingIsStatedItIsTaken) {
  struct Case {
    Topology topology;
    Stages stages;
  };
  for (const auto& [topology, stages] :
       {Case{Topology::Chain, kChain}, Case{Topology::Loop, kLoop}, Case{Topology::V, kV}}) {
    Schedule schedule = stating("");
    EXPECT_EQ(declare_topology(schedule, topology), std::nullopt);
    EXPECT_EQ(schedule.topology, topology);
    EXPECT_EQ(stages_of(schedule), stages) << name_of(topology);
  }
}

TEST(DeclareTopology, CustomTakesTheStagesOfEachRank) {
  Schedule schedule = stating("");
  const Stages stages{{3, 1}, {0, 2}};
  EXPECT_EQ(declare_topology(schedule, Topology::Custom, stages), std::nullopt);
  EXPECT_EQ(schedule.topology, Topology::Custom);
  EXPECT_EQ(stages_of(schedule), stages);
}

TEST(DeclareTopology, WhatIsStatedMayBeDeclaredAgain) {
  for (const char* placement :
       {"placement loop\n", "placement custom\nrank 0 stages 0,2\nrank 1 stages 1,3\n"}) {
    Schedule schedule = stating(placement);
    EXPECT_EQ(declare_topology(schedule, Topology::Loop), std::nullopt) << placement;
    EXPECT_EQ(declare_topology(schedule, Topology::Custom, kLoop), std::nullopt) << placement;
    EXPECT_EQ(stages_of(schedule), kLoop);
  }
}

TEST(DeclareTopology, WhatIsStatedIsNotOverruled) {
  Schedule schedule = stating("placement loop\n");
  const std::string otherwise = "the input itself places the stages of rank 0 otherwise";
  EXPECT_EQ(declare_topology(schedule, Topology::Chain), otherwise);
  EXPECT_EQ(declare_topology(schedule, Topology::V), otherwise);
  EXPECT_EQ(declare_topology(schedule, Topology::Custom, kV), otherwise);
  EXPECT_EQ(declare_topology(schedule, Topology::Custom, {{0, 2}, {3, 1}}),
            "the input itself places the stages of rank 1 otherwise");
}

TEST(DeclareTopology, WhatDoesNotFitLeavesTheScheduleAsItWas) {
  for (const char* placement : {"placement loop\n", ""}) {
    const Schedule before = stating(placement);
    Schedule schedule = before;
    if (before.topology != Topology::Independent) {
      EXPECT_TRUE(declare_topology(schedule, Topology::Chain));
    }
    EXPECT_TRUE(declare_topology(schedule, Topology::Custom, {{0, 1}}));
    EXPECT_TRUE(declare_topology(schedule, Topology::Custom, {{0, 1}, {2}}));
    EXPECT_EQ(schedule.topology, before.topology);
    EXPECT_EQ(stages_of(schedule), stages_of(before));
    EXPECT_TRUE(same_meaning(schedule, before));
  }
}

TEST(DeclareTopology, CustomStagesMustBeThoseOfTheRanksAndTheirChunks) {
  Schedule schedule = stating("");
  EXPECT_EQ(declare_topology(schedule, Topology::Custom), "it places 0 ranks, but the input has 2");
  EXPECT_EQ(declare_topology(schedule, Topology::Custom, {{0, 1}}),
            "it places 1 rank, but the input has 2");
  EXPECT_EQ(declare_topology(schedule, Topology::Custom, {{0, 1}, {2}}),
            "it places 1 chunk of rank 1, but the input has 2");
  EXPECT_EQ(declare_topology(schedule, Topology::Custom, {{0, 1, 4}, {2, 3}}),
            "it places 3 chunks of rank 0, but the input has 2");
}

TEST(DeclareTopology, IndependentUnwiresWhateverWasStated) {
  for (const char* placement : {"", "placement loop\n", "placement v\n"}) {
    Schedule schedule = stating(placement);
    EXPECT_EQ(declare_topology(schedule, Topology::Independent), std::nullopt);
    EXPECT_EQ(schedule.topology, Topology::Independent);
  }
}

TEST(DeclareTopology, AListForTeIsWiredAsOneRank) {
  Schedule schedule =
      load(Source{.name = "list", .text = "[1, 2, -2, -1]"}, {.form = TextForm::TeList})->schedule;
  EXPECT_EQ(declare_topology(schedule, Topology::Chain), std::nullopt);
  EXPECT_EQ(stages_of(schedule), (Stages{{0, 1}}));
}

}  // namespace
}  // namespace capo
