#include "core/plan/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

namespace capo {
namespace {

std::int64_t most_alive(const std::vector<Block>& blocks) {
  std::int64_t most = 0;
  for (const Block& at : blocks) {
    std::int64_t alive = 0;
    for (const Block& block : blocks) {
      if (block.begin <= at.begin && at.begin < block.end) alive += block.bytes;
    }
    most = std::max(most, alive);
  }
  return most;
}

void expect_apart(const std::vector<Block>& blocks, const Layout& layout) {
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    EXPECT_LE(layout.offsets[a] + blocks[a].bytes, layout.total);
    for (std::size_t b = 0; b < a; ++b) {
      if (blocks[a].begin >= blocks[b].end || blocks[b].begin >= blocks[a].end) continue;
      const bool apart = layout.offsets[a] + blocks[a].bytes <= layout.offsets[b] ||
                         layout.offsets[b] + blocks[b].bytes <= layout.offsets[a];
      EXPECT_TRUE(apart) << a << " and " << b;
    }
  }
}

std::vector<Block> at_random(std::mt19937& random, std::int64_t sizes) {
  std::vector<Block> blocks;
  for (std::uint32_t begin = 0; begin < 200; ++begin) {
    blocks.push_back({.bytes = 1 + static_cast<std::int64_t>(random() % sizes) * 7,
                      .begin = begin,
                      .end = begin + 1 + static_cast<std::uint32_t>(random() % 40)});
  }
  return blocks;
}

TEST(Layout, NoTwoThatAreAliveTogetherShareAByte) {
  std::mt19937 random(5);
  double worst = 1;
  for (int round = 0; round < 50; ++round) {
    const std::vector<Block> blocks = at_random(random, 6);
    const std::int64_t least = most_alive(blocks);
    const Layout layout = lay_out(blocks, least);
    expect_apart(blocks, layout);
    EXPECT_GE(layout.total, least);
    worst = std::max(worst, static_cast<double>(layout.total) / static_cast<double>(least));
  }
  std::printf("at worst %.3f times the least, of six sizes and lives at random\n", worst);
}

TEST(Layout, OfOneSizeItTakesWhatIsAliveAtOnce) {
  std::mt19937 random(6);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Block> blocks = at_random(random, 1);
    const std::int64_t least = most_alive(blocks);
    EXPECT_EQ(lay_out(blocks, least).total, least);
  }
}

TEST(Layout, LargeOnesFirstWhereThatIsBetter) {
  // As time goes on the small one takes the middle of what the large one needs.
  const std::vector<Block> blocks{{2, 0, 2}, {1, 1, 9}, {3, 3, 9}};
  EXPECT_EQ(lay_out(blocks, most_alive(blocks)).total, 4);
}

TEST(Layout, OfNothingIsNothing) {
  EXPECT_EQ(lay_out({}, 0).total, 0);
}

TEST(Layout, SortsNoMoreThanItsLimit) {
  const auto total = [](std::size_t count) {
    std::vector<Block> blocks{{2, 0, 2}, {1, 1, 9}, {3, 3, 9}};  // as above
    while (blocks.size() < count) {
      const std::uint32_t begin = 10 + static_cast<std::uint32_t>(blocks.size());
      blocks.push_back({.bytes = 1, .begin = begin, .end = begin + 1});
    }
    return lay_out(blocks, 4).total;
  };
  EXPECT_EQ(total(kMostSorted), 4);
  EXPECT_GT(total(kMostSorted + 1), 4);
}

}  // namespace
}  // namespace capo
