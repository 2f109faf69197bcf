// Copies of an order as one order: their ranks, stages, lists and groups.

#include "run/setup/replicas.h"
#include "core/graph/stage_map.h"
#include "core/rules/given_plan.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

using Ranks = std::vector<std::int32_t>;

Replicas copied(const std::string& text, std::int32_t count, CheckOptions options = {}) {
  auto replicas = replicas_of(typed(text), std::move(options), count);
  if (!replicas) throw std::invalid_argument(replicas.error());
  return *std::move(replicas);
}

std::string refused(const std::string& text, std::int32_t count, CheckOptions options = {}) {
  const auto replicas = replicas_of(typed(text), std::move(options), count);
  return replicas ? "" : replicas.error();
}

constexpr const char* kLoop =
    "capo 1\nranks 2\nmicrobatches 1\nstages 4\nplacement loop\nchunks 2\n"
    "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n";

TEST(Replicas, OneIsTheOrderItself) {
  const Input input = typed(kLoop);
  const Replicas one = copied(kLoop, 1);
  EXPECT_TRUE(same_meaning(one.input.schedule, input.schedule));
  EXPECT_TRUE(one.options.groups.empty());
}

TEST(Replicas, HaveStagesBehindThoseOfTheOneBeforeAndNoWireToIt) {
  const Schedule schedule = copied(kLoop, 3).input.schedule;
  ASSERT_EQ(schedule.ranks.size(), 6U);
  EXPECT_EQ(schedule.replicas, 3);
  EXPECT_EQ(schedule.stages, 12);
  EXPECT_EQ(schedule.ranks[1].stages, (Ranks{1, 3}));
  EXPECT_EQ(schedule.ranks[3].stages, (Ranks{5, 7}));
  const StageMap map(schedule);
  EXPECT_EQ(map.stages(), 12);
  for (std::int32_t stage = 0; stage < 12; ++stage) {
    EXPECT_EQ(map.before(stage), stage % 4 == 0 ? kNoStage : StageId(stage - 1)) << stage;
    EXPECT_EQ(map.after(stage), stage % 4 == 3 ? kNoStage : StageId(stage + 1)) << stage;
  }
}

constexpr const char* kTwoWays =
    "capo 1\nranks 2\nmicrobatches 1\nchunks 2\nplacement bidirectional\n"
    "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F2.0 F1.0 B1.0 B2.0\n";

TEST(Replicas, OfTwoPipelinesHaveTwoEach) {
  const Schedule schedule = copied(kTwoWays, 2).input.schedule;
  EXPECT_EQ(schedule.replicas, 2);
  EXPECT_EQ(schedule.ranks[0].stages, (Ranks{0, 3}));
  EXPECT_EQ(schedule.ranks[2].stages, (Ranks{4, 7}));
  EXPECT_EQ(schedule.ranks[3].stages, (Ranks{5, 6}));
  const StageMap map(schedule);
  EXPECT_EQ(map.stages(), 8);
  for (std::int32_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(map.before(stage), stage % 2 == 0 ? kNoStage : StageId(stage - 1)) << stage;
    EXPECT_EQ(map.after(stage), stage % 2 == 1 ? kNoStage : StageId(stage + 1)) << stage;
  }
}

TEST(Replicas, OfChunksThatAreNotWiredStayUnwired) {
  const Schedule schedule = copied("[1, 2, -2, -1]", 2).input.schedule;
  EXPECT_EQ(schedule.topology, Topology::Independent);
  EXPECT_EQ(schedule.ranks.size(), 2U);
}

TEST(Replicas, OfListsHaveAListForEachRank) {
  const Replicas both = copied("[1, 1, -1, -1]", 2);
  ASSERT_EQ(both.input.te_begins, (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(te_list_of(both.input, 0).size(), 4U);
  EXPECT_EQ(te_list_of(both.input, 1).size(), 4U);
  const CheckOptions declared = completed(both.input, both.options);
  EXPECT_EQ(check(both.input, declared).verdict, Verdict::Accepted);
}

TEST(Replicas, ReduceRankByRankUnlessAGroupDoes) {
  CheckOptions declared;
  declared.groups = {{.name = "ep", .members = {0, 1}, .actions = {Kind::DispatchForward}},
                     {.name = "dp", .members = {0}, .actions = {Kind::ReduceGradient}}};
  const auto groups = copied(kLoop, 2, declared).options.groups;
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].members, (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(groups[1].members, (Ranks{0, 2}));
  EXPECT_EQ(groups[2].members, (Ranks{1, 3}));
  EXPECT_EQ(groups[2].name, "replicas of rank 1");
}

TEST(Replicas, UnshardByThemselves) {
  CheckOptions declared;
  declared.groups = {{.name = "fsdp", .members = {0, 1}, .actions = {Kind::Unshard}},
                     {.name = "dp", .members = {0, 1}, .actions = {Kind::ReduceGradient}}};
  const auto groups = copied(kLoop, 2, declared).options.groups;
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].members, (Ranks{0, 1}));
  EXPECT_EQ(groups[1].members, (Ranks{2, 3}));
  EXPECT_EQ(groups[2].members, (Ranks{0, 1, 2, 3}));
}

TEST(Replicas, HaveTheModulesOfTheirRank) {
  CheckOptions declared;
  declared.modules.list = {small(ModuleKind::Linear), small(ModuleKind::Attention)};
  declared.modules.layers = {{{0}, {0}}, {{1}, {1}}};
  const CheckOptions both = copied(kLoop, 2, declared).options;
  EXPECT_EQ(both.modules.of(2, 1, 0)->kind, ModuleKind::Linear);
  EXPECT_EQ(both.modules.of(3, 2, 0)->kind, ModuleKind::Attention);
}

TEST(Replicas, AreRefusedWhereMegatronCallsTheTransfers) {
  const std::string why =
      "Megatron-LM's calls (p2p, ep_overlap) are those of one pipeline: replicas of it take the "
      "transfers that are put in";
  CheckOptions declared;
  declared.environment.p2p = MegatronCalls::Batch;
  EXPECT_EQ(refused(kLoop, 2, declared), why);
  EXPECT_EQ(refused(std::string(kLoop).replace(7, 0, "p2p batch\n"), 2), why);
  EXPECT_EQ(refused("[1, -1]", 2, declared), "") << "without transfers there are no calls";
}

TEST(Replicas, AreRefusedOfUnequalPipelinesAndOfAGivenPlan) {
  EXPECT_EQ(refused("capo 1\nranks 2\nmicrobatches 1\nchunks 3\nplacement bidirectional\n"
                    "rank 0: F1.0 F2.0 F3.0 B3.0 B2.0 B1.0\n"
                    "rank 1: F1.0 F2.0 F3.0 B3.0 B2.0 B1.0\n",
                    2),
            "an order whose two pipelines are not as long as each other has no replicas: give each "
            "rank as many chunks in either");
  EXPECT_EQ(refused(kTwoWays, 2), "");
  CheckOptions given;
  given.given = std::make_shared<const GivenPlan>();
  EXPECT_EQ(refused(kLoop, 2, given),
            "a plan that is given has memory for the ranks of one replica alone");
  EXPECT_EQ(refused(kLoop, 2), "");
}

}  // namespace
}  // namespace capo::run
