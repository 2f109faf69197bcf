// The walk itself, on placements that one can see.

#include "testing/oracle/placement.h"

#include <gtest/gtest.h>

namespace capo::oracle {
namespace {

using Stages = std::vector<std::vector<int>>;

TEST(OraclePlacement, RankByRankIsAChain) {
  EXPECT_EQ(stages(Walk::RankByRank, {2, 1, 3}), (Stages{{0, 1}, {2}, {3, 4, 5}}));
}

TEST(OraclePlacement, DownIsALoop) {
  EXPECT_EQ(stages(Walk::Down, {2, 2, 2}), (Stages{{0, 3}, {1, 4}, {2, 5}}));
}

TEST(OraclePlacement, DownAndUpIsAV) {
  EXPECT_EQ(stages(Walk::DownAndUp, {2, 2, 2}), (Stages{{0, 5}, {1, 4}, {2, 3}}));
  EXPECT_EQ(stages(Walk::DownAndUp, {3, 3}), (Stages{{0, 3, 4}, {1, 2, 5}}));
}

// DualPipe's stages 0 to 2 walk down, and 3 to 5 up.
TEST(OraclePlacement, FromBothEndsIsTwoPipelines) {
  EXPECT_EQ(stages(Walk::FromBothEnds, {2, 2, 2}), (Stages{{0, 5}, {1, 4}, {2, 3}}));
  EXPECT_EQ(stages(Walk::FromBothEnds, {3, 3}), (Stages{{0, 5, 2}, {1, 4, 3}}));
}

TEST(OraclePlacement, AMissingChunkLeavesAGap) {
  EXPECT_EQ(stages(Walk::Down, {2, 1, 2}), (Stages{{0, 3}, {1}, {2, 5}}));
}

TEST(OraclePlacement, OfNoRanksIsNothing) {
  EXPECT_EQ(stages(Walk::Down, {}), Stages{});
}

}  // namespace
}  // namespace capo::oracle
