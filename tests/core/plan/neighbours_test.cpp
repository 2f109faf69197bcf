// Ranks lie in rows and rings by the tensors that they exchange.

#include "core/plan/neighbours.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace capo {
namespace {

using RankList = std::vector<RankId>;

// Ranks that hold these stages, chunk by chunk.
Schedule holding(const std::vector<std::vector<std::int32_t>>& stages) {
  Schedule schedule;
  schedule.topology = Topology::Custom;
  for (const auto& of_rank : stages) {
    RankOrder& rank = schedule.ranks.emplace_back();
    rank.chunks = static_cast<std::int32_t>(of_rank.size());
    rank.stages.assign(of_rank.begin(), of_rank.end());
  }
  return schedule;
}

std::vector<Neighbours> neighbours_in(const Schedule& schedule) {
  const StageMap map(schedule);
  std::vector<Neighbours> all;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
    all.emplace_back(map, static_cast<std::int32_t>(r), schedule.ranks[r].chunks);
  return all;
}

bool lie_in_rows_and_rings(const Schedule& schedule) {
  return in_rows_and_rings(StageMap(schedule), schedule.ranks.size());
}

TEST(Neighbours, OfAChainLieInARow) {
  const Schedule schedule = holding({{0}, {1}, {2}});
  const auto all = neighbours_in(schedule);
  EXPECT_EQ(all[0].ranks(), RankList({1}));
  EXPECT_EQ(all[1].ranks(), RankList({0, 2}));
  EXPECT_TRUE(lie_in_rows_and_rings(schedule));
  EXPECT_TRUE(rings_of(all).empty());
}

TEST(Neighbours, OfALoopLieInARing) {
  const Schedule schedule = holding({{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  EXPECT_TRUE(lie_in_rows_and_rings(schedule));
  EXPECT_EQ(rings_of(neighbours_in(schedule)), std::vector<RankList>({{0, 3, 2, 1}}));
}

TEST(Neighbours, OfTwoRanksAreOneEach) {
  const Schedule schedule = holding({{0, 2}, {1, 3}});
  EXPECT_TRUE(lie_in_rows_and_rings(schedule));
  EXPECT_TRUE(rings_of(neighbours_in(schedule)).empty());
}

TEST(Neighbours, OfAStageDownAndBackAreThoseOfTheRow) {
  const Schedule schedule = holding({{0, 5}, {1, 4}, {2, 3}});
  const auto all = neighbours_in(schedule);
  EXPECT_EQ(all[2].ranks(), RankList({1}));
  EXPECT_TRUE(rings_of(all).empty());
}

TEST(Neighbours, TellWhichChunkIsAtTheOtherEnd) {
  const auto all = neighbours_in(holding({{0, 5}, {1, 4}, {2, 3}}));
  // Chunk 2 of rank 1 is stage 4: it reads what stage 3 makes, and the gradient of stage 5.
  EXPECT_EQ(all[1].maker(2, true).chunk, 2);
  EXPECT_EQ(all[1].ranks()[1], 2);
  EXPECT_EQ(all[1].maker(2, true).neighbour, 1);
  EXPECT_EQ(all[1].maker(2, false).neighbour, 0);
  EXPECT_EQ(all[1].reader(2, true).neighbour, 0);
  EXPECT_EQ(all[1].reader(2, false).neighbour, 1);
  // Stages 2 and 3 are on one rank.
  EXPECT_EQ(all[2].reader(1, true).neighbour, -1);
  EXPECT_EQ(all[2].maker(2, true).neighbour, -1);
  EXPECT_EQ(all[0].maker(1, true).neighbour, -1);
}

TEST(Neighbours, OfAStarAreTooMany) {
  EXPECT_FALSE(lie_in_rows_and_rings(holding({{0, 2, 4, 6}, {1}, {3}, {5}})));
}

}  // namespace
}  // namespace capo
