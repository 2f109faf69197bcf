// The tiles of a product whose results are rows, as row_division.h divides them, by the sizes of
// groups on the device at this moment. Items are numbered as product_tiles.cuh numbers tiles.
// Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/product_tiles.cuh"
#include "gpu/kernels/row_division.h"

namespace capo::gpu {

__device__ inline int down_of(int rows) {
  return (rows + kRowsHigh - 1) / kRowsHigh;
}

struct RowTiles : GroupTiles {  ///< in which tiles are items
  RowDivision division;
  int across;  ///< items
};

/// For a whole block, which waits for it. Without kDivides, all tiles have kRowsWide columns.
template <bool kDivides>
__device__ void find_row_tiles(const run::GroupedProduct& call, RowTiles& tiles) {
  if (threadIdx.x < 32) {
    const int groups = groups_of(call.rows);
    const auto columns = static_cast<int>(columns_of(call));
    const auto depth = static_cast<int>(call.kind == ProductKind::Forward ? call.in : call.out);
    write_sums(groups, tiles.first_row, [&](int group) { return size_of(call.rows, group); });
    mix_groups<kRowsHigh>(call, tiles);
    const auto down = [&](int place) {
      const int group = tiles.group_at(place);
      const int rows = tiles.first_row[group + 1] - tiles.first_row[group];
      return down_of(rows);
    };
    int sum = 0;
#pragma unroll 1
    for (auto place = static_cast<int>(threadIdx.x); place < groups; place += 32) {
      sum += down(place);
    }
    sum = __reduce_add_sync(0xffffffffU, sum);
    const auto blocks = static_cast<int>(gridDim.x);
    const RowDivision division = kDivides ? divide_rows(sum, columns, depth, blocks)
                                          : undivided(sum * tiles_across(columns, kRowsWide));
    const int across = tiles_across(columns, division.wide);
    if (threadIdx.x == 0) tiles.division = division;
    if (threadIdx.x == 0) tiles.across = across;
    const int end =
        write_sums(groups, tiles.first_tile, [&](int place) { return down(place) * across; });
    if (threadIdx.x == 0) tiles.end = end;
  }
  __syncthreads();
}

/// A tile, and its columns: a multiple of 64.
struct RowTile : Tile {
  int wide;
};

/// The tiles of one block, in their order; for whole warps.
class RowWalk {
 public:
  __device__ RowWalk(const run::GroupedProduct& call, const RowTiles& tiles)
      : tiles_(tiles),
        columns_(static_cast<int>(columns_of(call))),
        groups_(groups_of(call.rows)),
        at_(static_cast<int>(blockIdx.x)) {
    skip();
  }
  [[nodiscard]] __device__ bool is_over() const { return at_ >= tiles_.division.end; }
  __device__ void advance() {
    at_ += static_cast<int>(gridDim.x);
    skip();
  }
  /// Asked only while it is not over.
  [[nodiscard]] __device__ const RowTile& tile() const { return tile_; }

 private:
  // Skips pieces that lie behind all columns.
  __device__ void skip() {
    for (; !is_over(); at_ += static_cast<int>(gridDim.x)) {
      find();
      if (tile_.column < columns_) return;
    }
  }
  __device__ void find() {
    const RowDivision& division = tiles_.division;
    const int item = division.item_at(at_);
    const int at = !tiles_.are_mixed ? item : item % 2 == 0 ? item / 2 : tiles_.end - 1 - item / 2;
    const int place = place_of(at);
    tile_.group = tiles_.group_at(place);
    const int rows = tiles_.first_row[tile_.group + 1] - tiles_.first_row[tile_.group];
    const InBand in_band =
        in_band_of<16>(at - tiles_.first_tile[place], down_of(rows), tiles_.across);
    tile_.row = in_band.down * kRowsHigh;
    tile_.column = in_band.across * division.wide + division.skipped_at(at_);
    tile_.wide = division.wide_at(at_);
  }
  // Lanes look at 32 places at a time: one by one, the last of many groups takes long to find.
  [[nodiscard]] __device__ int place_of(int item) const {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    for (int first = 0;; first += 32) {
      const int place = first + lane;
      const bool is_before = place < groups_ && tiles_.first_tile[place + 1] <= item;
      const unsigned before = __ballot_sync(0xffffffffU, is_before);
      if (before != 0xffffffffU) return first + __popc(before);
    }
  }

  const RowTiles& tiles_;
  int columns_;
  int groups_;
  int at_;
  RowTile tile_ = {};
};

}  // namespace capo::gpu
