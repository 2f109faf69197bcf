// Gradients of weights add up over the rows of a group, batch by batch, in slices. A tile has a
// stretch of slices for each batch with rows, whose copies use descriptors of the group in the
// batch. Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/product_tiles.cuh"

namespace capo::gpu {

/// The rows of a group in a batch, of which 0 is the call's first; for whole warps.
__device__ inline BatchRows rows_of(const run::GroupedProduct& call, const Batch* batches,
                                    const GroupTiles& tiles, int group, int batch) {
  if (batch > 0) return rows_of(batches[batch - 1], group);
  const int first = tiles.first_row[group];
  return {first, tiles.first_row[group + 1] - first};
}

/// Slices of a group in all batches.
template <int kDeep>
[[nodiscard]] __device__ int slices_of_all(const run::GroupedProduct& call, const Batch* batches,
                                           const GroupTiles& tiles, int group) {
  int slices = (tiles.first_row[group + 1] - tiles.first_row[group] + kDeep - 1) / kDeep;
  for (int at = 0; at < call.further; ++at) {
    slices += (size_of(batches[at], group) + kDeep - 1) / kDeep;
  }
  return slices;
}

/// A tile over the rows of a batch, which count from the first row of the batch's x and y.
struct Stretch {
  Tile tile;
  int batch;
  int slices;  ///< 0 behind the last stretch
  int first_row;
  int end_row;  ///< beyond it copies bring zeros
};

/// Copies of a stretch: a warp keeps this of it, and has few registers.
struct StretchCopies {
  int slices;
  int first_row;
  int down;    ///< the tile's first row
  int across;  ///< and its first column
  int map;     ///< the place of descriptors in their ring
};

/// The stretches of one block, or of one cluster, as Walk goes through its tiles; for whole warps.
template <typename Walk, int kDeep>
class DepthWalk {
 public:
  __device__ DepthWalk(const run::GroupedProduct& call, const Batch* batches,
                       const GroupTiles& tiles)
      : call_(call), batches_(batches), tiles_(tiles), walk_(call, tiles) {}

  /// The next one. Batches in which the group has no rows have none, and neither have groups that
  /// are multiplied plainly.
  [[nodiscard]] __device__ Stretch next() {
    for (; !walk_.is_over(); walk_.advance(), batch_ = 0) {
      const Tile tile = walk_.tile();
      if (!is_aligned(call_.w[tile.group])) continue;
      while (batch_ <= call_.further) {
        const BatchRows rows = rows_of(call_, batches_, tiles_, tile.group, batch_);
        ++batch_;
        if (rows.count == 0) continue;
        const int slices = (rows.count + kDeep - 1) / kDeep;
        return {tile, batch_ - 1, slices, rows.first, rows.first + rows.count};
      }
    }
    return {};
  }

 private:
  const run::GroupedProduct& call_;
  const Batch* batches_;
  const GroupTiles& tiles_;
  Walk walk_;
  int batch_ = 0;  ///< that comes next
};

}  // namespace capo::gpu
