// However rows and columns are, tiles cover each element of a call once, and no block has much
// more to do than another.

#include "gpu/kernels/row_division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace capo::gpu {
namespace {

struct Call {
  std::vector<int> sizes;
  int columns;
  int depth;
  int blocks;
};

struct Piece {
  int group;
  int row;
  int column;
  int wide;
};

int down_of(int rows) {
  return (rows + kRowsHigh - 1) / kRowsHigh;
}

// The tiles of each block, whatever the order of items is.
std::vector<std::vector<Piece>> tiles_of(const Call& call) {
  const int down = std::accumulate(call.sizes.begin(), call.sizes.end(), 0,
                                   [](int sum, int rows) { return sum + down_of(rows); });
  const RowDivision division = divide_rows(down, call.columns, call.depth, call.blocks);
  const int across = tiles_across(call.columns, division.wide);
  std::vector<std::vector<Piece>> tiles(static_cast<std::size_t>(call.blocks));
  for (int at = 0; at < division.end; ++at) {
    int row = division.item_at(at) / across;
    int group = 0;
    for (; row >= down_of(call.sizes.at(static_cast<std::size_t>(group))); ++group) {
      row -= down_of(call.sizes[static_cast<std::size_t>(group)]);
    }
    const int column = division.item_at(at) % across * division.wide + division.skipped_at(at);
    if (column >= call.columns) continue;
    tiles[static_cast<std::size_t>(at % call.blocks)].push_back(
        {group, row * kRowsHigh, column, division.wide_at(at)});
  }
  return tiles;
}

std::string problem_of(const Call& call) {
  std::vector<std::vector<char>> covered;
  for (const int rows : call.sizes) {
    covered.emplace_back(static_cast<std::size_t>(rows) * static_cast<std::size_t>(call.columns));
  }
  for (const auto& of_block : tiles_of(call)) {
    for (const Piece& tile : of_block) {
      const int rows = call.sizes[static_cast<std::size_t>(tile.group)];
      if (tile.row >= rows) return "a tile lies behind its group";
      if (tile.wide % 64 != 0 || tile.wide <= 0 || tile.wide > kRowsWide) return "an odd width";
      for (int row = tile.row; row < std::min(rows, tile.row + kRowsHigh); ++row) {
        for (int column = tile.column; column < std::min(call.columns, tile.column + tile.wide);
             ++column) {
          char& times =
              covered[static_cast<std::size_t>(tile.group)]
                     [static_cast<std::size_t>(row) * static_cast<std::size_t>(call.columns) +
                      static_cast<std::size_t>(column)];
          if (++times > 1) return "an element is in two tiles";
        }
      }
    }
  }
  for (const auto& group : covered) {
    if (std::count(group.begin(), group.end(), 0) > 0) return "an element is in no tile";
  }
  return "";
}

TEST(RowDivision, CoversEachElementOnce) {
  const std::vector<int> sizes = {0, 1, 64, 65, 127, 128, 129, 192, 193, 300, 2049, 2112};
  for (const int columns : {8, 64, 200, 256, 264, 520, 768, 1032}) {
    for (const int blocks : {1, 3, 7, 16, 132}) {
      for (std::size_t first = 0; first < sizes.size(); ++first) {
        Call call{{}, columns, 512, blocks};
        for (std::size_t i = first; i < std::min(first + 4, sizes.size()); ++i) {
          call.sizes.push_back(sizes[i]);
        }
        EXPECT_EQ(problem_of(call), "")
            << columns << " columns, " << blocks << " blocks, from " << sizes[first] << " rows on";
      }
    }
  }
}

// Rows that a block multiplies times columns, those that round up a tile among them.
std::int64_t most_of_a_block(const Call& call) {
  std::int64_t most = 0;
  for (const auto& of_block : tiles_of(call)) {
    std::int64_t sum = 0;
    for (const Piece& tile : of_block) sum += std::int64_t{kRowsHigh} * tile.wide;
    most = std::max(most, sum);
  }
  return most;
}

TEST(RowDivision, CutsTheItemsOfALastRoundThatIsHalfEmpty) {
  constexpr std::int64_t kTile = std::int64_t{kRowsHigh} * kRowsWide;
  // Two rounds, and a quarter, a half and three quarters of a third.
  EXPECT_EQ(most_of_a_block({{16 * 128}, 256, 512, 8}), 2 * kTile);
  EXPECT_EQ(most_of_a_block({{18 * 128}, 256, 512, 8}), 2 * kTile + kTile / 4);
  EXPECT_EQ(most_of_a_block({{20 * 128}, 256, 512, 8}), 2 * kTile + kTile / 2);
  EXPECT_EQ(most_of_a_block({{22 * 128}, 256, 512, 8}), 3 * kTile);
}

TEST(RowDivision, TakesNarrowTilesWhereTheyAreOverSooner) {
  // 96 tiles of 256 columns for 132 blocks, or 128 of 192.
  EXPECT_EQ(most_of_a_block({std::vector<int>(16, 256), 768, 2048, 132}), 128 * 192);
  EXPECT_EQ(most_of_a_block({std::vector<int>(16, 256), 1024, 2048, 132}), 128 * 256);
}

}  // namespace
}  // namespace capo::gpu
