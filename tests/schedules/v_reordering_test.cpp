// From building blocks to orders: every block either fits and gives whole orders that keep its
// peak, or is left out.

#include "schedules/v_block.h"
#include "schedules/v_grid.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

#include <functional>

namespace capo::schedules {
namespace {

// Slots stand in the order of passes: Forward1, Forward2, Backward2, Backward1, Weight2, Weight1.
constexpr PassSlots kFirstRank = {0, 3, 4, 1, 5, 2};

void for_every_block(std::size_t ranks, const std::function<void(const Block&)>& look) {
  for (const PassSlots& first_rank : first_ranks()) {
    for (std::size_t before = 1; before <= kLongestStep; ++before) {
      for (std::size_t after = 1; after <= before; ++after) {
        const auto block = block_of(first_rank, {.before = before, .after = after}, ranks);
        if (block) look(*block);
      }
    }
  }
}

Setting v_of(std::size_t ranks, std::size_t microbatches) {
  return {.ranks = static_cast<std::int32_t>(ranks),
          .microbatches = static_cast<std::int32_t>(microbatches),
          .chunks = 2};
}

TEST(VReordering, WarmUpRunsAheadAndCoolDownIsTight) {
  const auto slots = first_slots(*block_of(kFirstRank, {}, 2));
  const Reordered reordered = reorder(slots, 4, 4);
  ASSERT_TRUE(reordered.grid.has_value());
  EXPECT_EQ(reordered.peak, 4);
  EXPECT_EQ(span_of(*reordered.grid, 4, {}), 24) << "no rank waits once it has begun";
}

TEST(VReordering, ABlockBeyondTheLimitIsLeftOut) {
  const auto slots = first_slots(*block_of(kFirstRank, {}, 2));
  const Reordered reordered = reorder(slots, 4, 3);
  EXPECT_FALSE(reordered.grid.has_value());
  EXPECT_EQ(reordered.peak, 4);
}

TEST(VReordering, FewMicrobatchesHoldLessThanTheBlock) {
  const auto slots = first_slots(*block_of(kFirstRank, {}, 2));
  EXPECT_EQ(reorder(slots, 1, 2).peak, 2);
}

TEST(VReordering, EveryBlockGivesWholeOrdersThatFinishWithinItsPeak) {
  std::size_t reordered_blocks = 0;
  for (std::size_t ranks = 2; ranks <= 5; ++ranks) {
    for (const std::size_t microbatches : {std::size_t{1}, ranks, 2 * ranks, 3 * ranks + 1}) {
      const Setting setting = v_of(ranks, microbatches);
      const auto limit = static_cast<std::int64_t>(2 * ranks);
      for_every_block(ranks, [&](const Block& block) {
        const Reordered reordered = reorder(first_slots(block), microbatches, limit);
        if (!reordered.grid) return;
        ++reordered_blocks;
        EXPECT_EQ(peak_of(*reordered.grid), reordered.peak);
        EXPECT_LE(reordered.peak, limit);
        EXPECT_EQ(order_laws::broken_law(orders_of(*reordered.grid), order_laws::wave(setting)),
                  std::nullopt);
      });
    }
  }
  EXPECT_GT(reordered_blocks, 500U);
}

TEST(VReordering, ALengthenedGridIsThatOfMoreMicrobatches) {
  for (std::size_t ranks = 2; ranks <= 5; ++ranks) {
    const auto limit = static_cast<std::int64_t>(2 * ranks);
    for_every_block(ranks, [&](const Block& block) {
      const auto slots = first_slots(block);
      const Reordered fewer = reorder(slots, 3 * ranks, limit);
      if (!fewer.grid) return;
      const auto longer = lengthen(*fewer.grid, 5);
      ASSERT_TRUE(longer.has_value());
      EXPECT_EQ(orders_of(*longer), orders_of(*reorder(slots, 3 * ranks + 5, limit).grid));
    });
  }
}

}  // namespace
}  // namespace capo::schedules
