#include "testing/oracle_pipeline.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

Schedule loop_of_two() {
  Schedule schedule{.naming = Naming::Named, .topology = Topology::Loop, .microbatches = 1};
  for (int r = 0; r < 2; ++r) schedule.ranks.push_back({.chunks = 2});
  place_stages(schedule);
  return schedule;
}

Step step(Kind kind, ChunkId chunk, MicrobatchId microbatch = kNoMicrobatch,
          Group group = Group::Alone) {
  return to_step({.kind = kind, .chunk = chunk, .microbatch = microbatch}, kNoEntry, group);
}

Lowered lowered_to(const std::vector<std::vector<Step>>& ranks) {
  Lowered lowered;
  for (const std::vector<Step>& steps : ranks) lowered.ranks.emplace_back(steps);
  return lowered;
}

TEST(OraclePipeline, NamesStagesAndTheirRanks) {
  const Schedule schedule = loop_of_two();
  const Lowered lowered = lowered_to(
      {{step(Kind::Forward, 2, 0), step(Kind::BackwardInput, 2, 0), step(Kind::SendForward, 1, 0)},
       {step(Kind::ReceiveForward, 2, 0)}});
  const oracle::Pipeline pipeline = oracle_pipeline(lowered, StageMap(schedule), {});
  EXPECT_EQ(pipeline.home, (std::vector<int>{0, 1, 0, 1}));
  ASSERT_EQ(pipeline.ranks.size(), 2u);
  ASSERT_EQ(pipeline.ranks[0].size(), 3u);
  EXPECT_EQ(pipeline.ranks[0][0].kind, oracle::Operation::Forward);
  EXPECT_EQ(pipeline.ranks[0][0].stage, 2);
  EXPECT_EQ(pipeline.ranks[0][1].kind, oracle::Operation::Backward);
  EXPECT_EQ(pipeline.ranks[0][2].kind, oracle::Operation::SendForward);
  EXPECT_EQ(pipeline.ranks[0][2].stage, 0);
  EXPECT_EQ(pipeline.ranks[1][0].stage, 3);
}

TEST(OraclePipeline, KeepsWhoWaitsWhatIsFusedAndTheCommunicator) {
  const Schedule schedule = loop_of_two();
  Step send = step(Kind::SendForward, 1, 0, Group::Opens);
  send.wait = Wait::AtNext;
  Step receive = step(Kind::ReceiveForward, 2, 0, Group::Continues);
  receive.wait = Wait::AtOnce;
  receive.communicator = 1;
  const Lowered lowered = lowered_to({{send, receive}, {}});
  const oracle::Pipeline pipeline = oracle_pipeline(lowered, StageMap(schedule), {});
  const auto& operations = pipeline.ranks[0];
  EXPECT_EQ(operations[0].holds, oracle::Operation::MuchLater);
  EXPECT_FALSE(operations[0].joined);
  EXPECT_EQ(operations[1].holds, oracle::Operation::Later);
  EXPECT_TRUE(operations[1].joined);
  EXPECT_EQ(operations[1].communicator, 1);
}

TEST(OraclePipeline, LeavesOutWhatNeitherComputesNorTransfers) {
  const Schedule schedule = loop_of_two();
  const Lowered lowered = lowered_to(
      {{step(Kind::Unshard, 1), step(Kind::Forward, 1, 0), step(Kind::ReduceGradient, 1)}, {}});
  EXPECT_EQ(oracle_pipeline(lowered, StageMap(schedule), {}).ranks[0].size(), 1u);
}

TEST(OraclePipeline, TakesTheEnvironment) {
  const Schedule schedule = loop_of_two();
  const Lowered lowered = lowered_to({{}, {}});
  const StageMap map(schedule);
  const oracle::Pipeline strict = oracle_pipeline(lowered, map, {});
  EXPECT_EQ(strict.lines, oracle::Lines::All);
  EXPECT_EQ(strict.held, 0);
  const oracle::Pipeline loose = oracle_pipeline(
      lowered, map, {.communicators = Communicators::PerEdge, .transfers = TransferMode::Buffered});
  EXPECT_EQ(loose.lines, oracle::Lines::OfThePairAndDirection);
  EXPECT_EQ(loose.held, oracle::kHoldsAll);
  const oracle::Pipeline tight = oracle_pipeline(lowered, map,
                                                 {.communicators = Communicators::PerDirection,
                                                  .transfers = TransferMode::Buffered,
                                                  .channel_bytes = 35,
                                                  .message_bytes = 10});
  EXPECT_EQ(tight.lines, oracle::Lines::OfThePass);
  EXPECT_EQ(tight.held, 3);
}

}  // namespace
}  // namespace capo::testing
