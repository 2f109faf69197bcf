// The results of products of codes on sm_90a, from the registers of a warpgroup to memory: through
// chunks where gradients of weights lie as the copy engine takes them, else by the threads
// themselves. Tested by tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_wide.cuh"

#include <cstdint>

namespace capo::gpu {

/// The first row of a tile that a thread has sums of; the second is eight further.
[[nodiscard]] __device__ inline int row_of_half() {
  return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x % 32 / 4);
}

template <run::Write kWrite, typename C>
__device__ void put_one_by_one(const Product<C, C>& product, const Tile& tile,
                               const WideSums& sums) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int i = 0; i < 4 * 8 * 4; ++i) {
    const int row = tile.row + row_of_half() + i % 4 / 2 * 8;
    const int column = tile.column + i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (row >= product.rows() || column >= product.columns()) continue;
    put(product.c[std::int64_t{row} * product.columns() + column], sums[i / 32][i / 4 % 8][i % 4],
        kWrite);
  }
}

/// Puts this warpgroup's half of a tile of rows, or of gradients of weights where there are chunks.
template <run::Write kWrite, typename C, WideFor kFor>
__device__ void put_wide_tile(const run::GroupedProduct& call, const GroupTiles& tiles,
                              const Tile& tile, WideChunks<C, kFor>& chunks, const WideSums& sums) {
  const Product<C, C> product = product_of<C, C>(call, tiles, tile.group);
  if constexpr (shape_for(kFor).chunks > 0) {
    if (is_aligned(product.c)) {
      const int end = min(tile.column + kWideAcross, static_cast<int>(call.in));
      chunks.template put_results<kWrite>(end - tile.column, sums);
    } else {
      put_one_by_one<kWrite>(product, tile, sums);
    }
  } else {
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 * 16;
#pragma unroll
    for (int i = 0; i < kWideAcross / kWarpSide; ++i) {
      write_band<run::Write::Overwrite>(product, row, tile.column + i * kWarpSide, sums[i]);
    }
  }
}
/// Puts it as the call says: over what is there, or added to it.
template <typename C, WideFor kFor>
__device__ void put_wide_tile(const run::GroupedProduct& call, const GroupTiles& tiles,
                              const Tile& tile, WideChunks<C, kFor>& chunks, const WideSums& sums) {
  if (call.write == run::Write::Add) {
    put_wide_tile<run::Write::Add>(call, tiles, tile, chunks, sums);
  } else {
    put_wide_tile<run::Write::Overwrite>(call, tiles, tile, chunks, sums);
  }
}

}  // namespace capo::gpu
