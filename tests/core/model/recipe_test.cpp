// The bytes of quantized copies, as TransformerEngine allocates them.

#include "core/model/recipe.h"

#include <gtest/gtest.h>

#include <limits>

namespace capo {
namespace {

constexpr Recipe kAll[] = {Recipe::None,  Recipe::Delayed, Recipe::Current,
                           Recipe::Block, Recipe::Mxfp8,   Recipe::Nvfp4};

// 200 rows of 300 columns: nothing is a multiple of any block.
constexpr QuantizedCopy kByColumns{.rows = 200, .columns = 300};
constexpr QuantizedCopy kByRows{.rows = 200, .columns = 300, .lines = CopyLines::Rows};

QuantizedCopy weight(QuantizedCopy copy) {
  copy.weight = true;
  return copy;
}

TEST(Recipe, SaysOfEachWhetherItQuantizesAndLeavesStateOutside) {
  for (const Recipe recipe : kAll) {
    SCOPED_TRACE(name_of(recipe));
    EXPECT_EQ(facts_of(recipe).recipe, recipe);
    EXPECT_EQ(quantizes(recipe), recipe != Recipe::None);
    EXPECT_EQ(facts_of(recipe).state_outside, recipe == Recipe::Delayed);
    EXPECT_EQ(facts_of(recipe).runs, recipe != Recipe::Nvfp4);
  }
}

TEST(Recipe, CopiesOfNoneTakeNothing) {
  EXPECT_EQ(copy_bytes(Recipe::None, kByRows), 0);
}

TEST(Recipe, ElementsTakeAByteOrHalfOfOne) {
  for (const Recipe recipe : {Recipe::Delayed, Recipe::Current, Recipe::Block, Recipe::Mxfp8})
    EXPECT_EQ(element_bytes_of(recipe, kByRows), 200 * 300);
  EXPECT_EQ(element_bytes_of(Recipe::Nvfp4, kByRows), 200 * 150);
  EXPECT_EQ(element_bytes_of(Recipe::Nvfp4, {.rows = 3, .columns = 3}), 5);
}

TEST(Recipe, ScalesAreOneForATensorOrPaddedAsTheyAreAllocated) {
  for (const Recipe recipe : {Recipe::Delayed, Recipe::Current}) {
    EXPECT_EQ(scale_bytes_of(recipe, kByRows), 4);
    EXPECT_EQ(scale_bytes_of(recipe, weight(kByColumns)), 4);
  }
  EXPECT_EQ(scale_bytes_of(Recipe::Block, kByRows), 3 * 200 * 4);
  EXPECT_EQ(scale_bytes_of(Recipe::Block, kByColumns), 2 * 300 * 4);
  EXPECT_EQ(scale_bytes_of(Recipe::Block, {.rows = 129, .columns = 3, .lines = CopyLines::Rows}),
            1 * 132 * 4)
      << "lines go up to four";
  EXPECT_EQ(scale_bytes_of(Recipe::Block, weight(kByRows)), 2 * 4 * 4) << "of 2 by 3 squares";
  EXPECT_EQ(scale_bytes_of(Recipe::Block, weight(kByColumns)), 3 * 4 * 4);
  EXPECT_EQ(scale_bytes_of(Recipe::Mxfp8, kByRows), 256 * 12);
  EXPECT_EQ(scale_bytes_of(Recipe::Mxfp8, kByColumns), 384 * 8);
  EXPECT_EQ(scale_bytes_of(Recipe::Mxfp8, weight(kByColumns)), 384 * 8);
  EXPECT_EQ(scale_bytes_of(Recipe::Nvfp4, kByRows), 256 * 20 + 4);
  EXPECT_EQ(scale_bytes_of(Recipe::Nvfp4, kByColumns), 384 * 16 + 4);
}

TEST(Recipe, BytesBeyondSixtyFourBitsAreTheLargestNumber) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const QuantizedCopy large{.rows = std::int64_t{1} << 40, .columns = std::int64_t{1} << 40};
  for (const Recipe recipe : {Recipe::Current, Recipe::Block, Recipe::Mxfp8})
    EXPECT_EQ(copy_bytes(recipe, large), kMost);
  const QuantizedCopy largest{.rows = kMost, .columns = kMost};
  for (const Recipe recipe : {Recipe::Current, Recipe::Block, Recipe::Mxfp8, Recipe::Nvfp4}) {
    EXPECT_EQ(element_bytes_of(recipe, largest), kMost);
    EXPECT_EQ(copy_bytes(recipe, largest), kMost);
  }
}

}  // namespace
}  // namespace capo
