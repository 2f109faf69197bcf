// The homes of stages, under every topology.

#include "core/graph/stage_map.h"
#include "core/frameworks/torch/csv_reader.h"
#include "tests/core/graph/order_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::read_schedule;

using Lines = std::vector<std::string>;

// Returns "rank.chunk" of every stage, and "nowhere" if no rank holds it.
Lines homes_of(const StageMap& map) {
  Lines homes;
  for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
    const StageMap::Place& home = map.home(stage);
    homes.push_back(home.rank < 0 ? "nowhere"
                                  : std::to_string(home.rank) + "." + std::to_string(home.chunk));
  }
  return homes;
}

StageMap placed(const std::string& placement) {
  return StageMap(read_schedule("ranks 2\nmicrobatches 1\nchunks 2\nplacement " + placement +
                                "\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n"));
}

TEST(StageMap, AChainGoesChunkByChunkAndRankByRank) {
  EXPECT_EQ(homes_of(placed("chain")), (Lines{"0.1", "0.2", "1.1", "1.2"}));
}

TEST(StageMap, ALoopGoesAroundTheRanks) {
  EXPECT_EQ(homes_of(placed("loop")), (Lines{"0.1", "1.1", "0.2", "1.2"}));
}

TEST(StageMap, AVGoesDownTheRanksAndUpAgain) {
  EXPECT_EQ(homes_of(placed("v")), (Lines{"0.1", "1.1", "1.2", "0.2"}));
}

TEST(StageMap, TwoPipelinesGoDownAndUpTheRanksAndAreNotWiredToEachOther) {
  const StageMap map = placed("bidirectional");
  EXPECT_EQ(homes_of(map), (Lines{"0.1", "1.1", "1.2", "0.2"}));
  EXPECT_EQ(map.after(0), 1);
  EXPECT_EQ(map.after(1), kNoStage);
  EXPECT_EQ(map.before(2), kNoStage);
  EXPECT_EQ(map.after(2), 3);
  EXPECT_EQ(map.before(3), 2);
  EXPECT_EQ(map.after(3), kNoStage);
}

TEST(StageMap, FourChunksInTwoPipelinesLoopTwiceInEach) {
  const StageMap map(
      read_schedule("ranks 2\nmicrobatches 1\nchunks 4\nplacement bidirectional\n"
                    "rank 0: F1 F2 F3 F4 B4 B3 B2 B1\nrank 1: F1 F2 F3 F4 B4 B3 B2 B1\n"));
  EXPECT_EQ(homes_of(map), (Lines{"0.1", "1.1", "0.3", "1.3", "1.2", "0.2", "1.4", "0.4"}));
  EXPECT_EQ(map.after(3), kNoStage);
  EXPECT_EQ(map.before(4), kNoStage);
}

TEST(StageMap, CustomIsAsListed) {
  const StageMap map(
      read_schedule("ranks 2\nmicrobatches 1\nchunks 2\nplacement custom\n"
                    "rank 0 stages 3,1\nrank 1 stages 0,2\n"
                    "rank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n"));
  EXPECT_EQ(homes_of(map), (Lines{"1.1", "0.2", "1.2", "0.1"}));
  EXPECT_EQ(map.stage_of(0, 1), 3);
  EXPECT_EQ(map.stage_of(1, 2), 2);
}

TEST(StageMap, BothDirectionsAgree) {
  for (const char* placement : {"independent", "chain", "loop", "v"}) {
    const StageMap map = placed(placement);
    ASSERT_EQ(map.stages(), 4);
    for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
      EXPECT_EQ(map.stage_of(map.home(stage).rank, map.home(stage).chunk), stage) << placement;
    }
  }
}

TEST(StageMap, BeforeTheFirstAndAfterTheLastIsNothing) {
  const StageMap map = placed("loop");
  EXPECT_TRUE(map.wired());
  EXPECT_EQ(map.before(0), kNoStage);
  EXPECT_EQ(map.before(3), 2);
  EXPECT_EQ(map.after(0), 1);
  EXPECT_EQ(map.after(3), kNoStage);
  EXPECT_TRUE(map.same_rank(0, 2));
  EXPECT_FALSE(map.same_rank(0, 1));
}

TEST(StageMap, IndependentChunksAreStagesThatNothingConnects) {
  const StageMap map = placed("independent");
  EXPECT_FALSE(map.wired());
  EXPECT_EQ(homes_of(map), (Lines{"0.1", "0.2", "1.1", "1.2"}));
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(map.before(stage), kNoStage);
    EXPECT_EQ(map.after(stage), kNoStage);
  }
}

TEST(StageMap, AStageThatNobodyHoldsIsNowhere) {
  const StageMap map(
      read_schedule("ranks 2\nmicrobatches 1\nchunks 1\nplacement custom\n"
                    "rank 0 stages 0\nrank 1 stages 2\n"
                    "rank 0: F1 B1\nrank 1: F1 B1\n"));
  EXPECT_EQ(homes_of(map), (Lines{"0.1", "nowhere", "1.1"}));
}

// Stage 0 is declared to be on rank 1, and rank 0 runs it all the same.
TEST(StageMap, TheHomeIsWhereATableIsDeclaredToHaveTheStage) {
  const auto rows = split_torch_csv("0F0,0B0\n0F1,0B1\n", {});
  const auto read = read_torch_rows(*rows, {.stage_to_rank = std::vector<std::int32_t>{1}}, {});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->schedule.ranks[0].strays, 1);
  EXPECT_EQ(homes_of(StageMap(read->schedule)), Lines{"1.1"});
  EXPECT_EQ(StageMap(read->schedule).stage_of(0, 1), 0);
}

TEST(StageMap, RanksNeedNotHoldAsManyChunks) {
  const StageMap map(
      read_schedule("ranks 2\nmicrobatches 1\nplacement chain\n"
                    "rank 0: F1 F2 F3 B3 B2 B1\nrank 1: F1 B1\n"));
  EXPECT_EQ(homes_of(map), (Lines{"0.1", "0.2", "0.3", "1.1"}));
}

}  // namespace
}  // namespace capo
