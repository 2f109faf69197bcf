// A product of codes by plain multiplications and additions in fp32 of what the codes stand for:
// for devices whose tensor cores know no codes, and for whatever does not lie as 16-byte copies
// need it. It is product_plain.cuh with another operand. Tested by tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/scaled_operands.cuh"

#include <cstdint>

namespace capo::gpu {

template <run::Scaling kScaling, typename C>
__device__ void multiply_scaled(const run::GroupedProduct& call, const ScaledOperand<kScaling>& a,
                                const ScaledOperand<kScaling>& b, C* c, const Tile& tile) {
  float sums[4][4] = {};
  plain::add_up(a, b, tile.row, tile.column, sums);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = tile.row + plain::row_of_thread() + i;
      const int column = tile.column + plain::column_of_thread() + j;
      if (row >= a.count || column >= b.count) continue;
      put(c[std::int64_t{row} * b.count + column], sums[i][j], call.write);
    }
  }
}

/// A kernel for ScaledProduct.
template <run::Scaling kScaling, typename C>
__global__ void __launch_bounds__(kPlainThreads)
    multiply_scaled_plainly(const __grid_constant__ run::ScaledProduct given) {
  __shared__ GroupTiles tiles;
  __shared__ DepthGroups depths;
  const run::GroupedProduct call = seen(given);
  const ScaledSides sides = operands_of(given);
  const bool sums_rows = call.kind == ProductKind::WeightGradient;
  if (sums_rows && threadIdx.x >= 32 && threadIdx.x < 64) find_depths(call.rows, depths);
  find_tiles<kPlainSide, kPlainSide>(call, nullptr, tiles);
  for (TileWalk<kPlainSide, kPlainSide> walk(call, tiles); !walk.is_over(); walk.advance()) {
    const Tile tile = walk.tile();
    if (sums_rows) {
      const auto out = static_cast<int>(call.out);
      const auto in = static_cast<int>(call.in);
      multiply_scaled(call, scaled_columns<kScaling>(sides.a, call, depths, tile.group, out),
                      scaled_columns<kScaling>(sides.b, call, depths, tile.group, in),
                      static_cast<C*>(call.w[tile.group]), tile);
    } else {
      C* const y = static_cast<C*>(call.y) + tiles.first_row[tile.group] * call.out;
      multiply_scaled(call, scaled_rows<kScaling>(sides.a, call, tiles, tile.group),
                      scaled_weights<kScaling>(sides.b, call, tile.group), y, tile);
    }
  }
}

}  // namespace capo::gpu
