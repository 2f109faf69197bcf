// Building blocks on a V: the blocks of a first rank, where they put microbatch 0, and what they
// hold.

#include "schedules/v_block.h"

#include <gtest/gtest.h>

#include <set>

namespace capo::schedules {
namespace {

// Slots stand in the order of passes: Forward1, Forward2, Backward2, Backward1, Weight2, Weight1.
constexpr PassSlots kZeroBubbleOnTwoRanks = {0, 3, 4, 1, 5, 2};

TEST(VBlock, AFirstRankIsAnyOrderOfItsChain) {
  const std::vector<PassSlots> ranks = first_ranks();
  EXPECT_EQ(ranks.size(), 60U);
  EXPECT_EQ(std::set<PassSlots>(ranks.begin(), ranks.end()).size(), ranks.size());
  for (const PassSlots& rank : ranks) {
    EXPECT_EQ(rank[0], 0U);
    EXPECT_EQ(std::set<std::size_t>(rank.begin(), rank.end()).size(), kPeriod);
  }
}

TEST(VBlock, WeightHalvesTakeTheFirstSlotsAfterTheirBackwards) {
  EXPECT_EQ(first_ranks().front(), (PassSlots{0, 1, 2, 3, 4, 5}));
}

TEST(VBlock, WhatGoesDownIsLaterAndWhatComesUpIsEarlier) {
  const auto block = block_of(kZeroBubbleOnTwoRanks, {.before = 1, .after = 1}, 2);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ((*block)[1], (PassSlots{1, 2, 5, 0, 3, 4}));
}

TEST(VBlock, TheStepChangesOnceOnTheWay) {
  const auto block =
      block_of(kZeroBubbleOnTwoRanks, {.before = 3, .after = 1, .ranks_before = 1}, 3);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ((*block)[1], (PassSlots{3, 2, 1, 0, 4, 5}));
  EXPECT_EQ((*block)[2], (PassSlots{4, 1, 2, 5, 3, 0}));
}

TEST(VBlock, TwoPassesDoNotShareASlot) {
  EXPECT_EQ(block_of({0, 2, 3, 4, 5, 1}, {}, 2), std::nullopt);
}

TEST(VBlock, AMicrobatchTakesTheFirstSlotOfEachPass) {
  const Block block = *block_of(kZeroBubbleOnTwoRanks, {}, 2);
  const std::vector<PassSlots> slots = first_slots(block);
  EXPECT_EQ(slots[0], (PassSlots{0, 3, 4, 7, 5, 8}));
  EXPECT_EQ(slots[1], (PassSlots{1, 2, 5, 6, 9, 10}));
}

TEST(VBlock, ItsPeakIsThatOfTheSteadyMiddle) {
  const Block block = *block_of(kZeroBubbleOnTwoRanks, {}, 2);
  // Rank 0: F1 0-8, F2 3-5; rank 1: F1 1-10, F2 2-9; a new microbatch every six slots.
  EXPECT_EQ(peak_of(first_slots(block)), 4);
}

}  // namespace
}  // namespace capo::schedules
