// A tile of a product by plain multiplications and additions in fp32: for fp32 operands, and for
// whatever does not lie as tensor cores and 16-byte copies need it. Any sizes, any alignment; each
// element adds in ascending order of depth.
//
// 256 threads compute 64 x 64 elements, 4 x 4 each. Shared memory, as floats:
//
//   a   kDeep x (64 + 4)   a slice of A, element (depth, row)
//   b   kDeep x (64 + 4)   likewise of B
//
// Tested by tests/gpu/products_test.cpp.

#pragma once

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/product_tiles.cuh"

namespace capo::gpu {

inline constexpr int kPlainSide = 64;
inline constexpr int kPlainThreads = 256;

namespace plain {

inline constexpr int kDeep = 16;

using Slice = float[kDeep][kPlainSide + 4];

// The first kPlainThreads threads wait for each other; a block may have more, which do not.
__device__ inline void wait_for_all() {
  asm volatile("bar.sync 1, %0;\n" ::"n"(kPlainThreads) : "memory");
}

// Neighbouring threads read what lies side by side. Zero where there is nothing.
template <typename T>
__device__ void load_slice(const Operand<T>& operand, int first, int first_depth, Slice& slice) {
  for (auto at = static_cast<int>(threadIdx.x); at < kDeep * kPlainSide; at += kPlainThreads) {
    const bool along_depth = operand.depth_step == 1;
    const int depth = along_depth ? at % kDeep : at / kPlainSide;
    const int one = along_depth ? at / kDeep : at % kPlainSide;
    const bool is_there = first + one < operand.count && first_depth + depth < operand.depth;
    slice[depth][one] = is_there
                            ? to_float(operand.data[(first + one) * operand.step +
                                                    (first_depth + depth) * operand.depth_step])
                            : 0.0F;
  }
}

}  // namespace plain

/// For the first kPlainThreads threads of a block.
template <typename T, typename C>
__device__ void multiply_plainly(const Product<T, C>& product, int first_row, int first_column,
                                 run::Write write) {
  using plain::kDeep;
  __shared__ plain::Slice a;
  __shared__ plain::Slice b;
  const int down = static_cast<int>(threadIdx.x) / 16 * 4;
  const int across = static_cast<int>(threadIdx.x) % 16 * 4;
  float sums[4][4] = {};
  for (int depth = 0; depth < product.depth(); depth += kDeep) {
    plain::wait_for_all();  // somebody may still be reading the slices before
    plain::load_slice(product.a, first_row, depth, a);
    plain::load_slice(product.b, first_column, depth, b);
    plain::wait_for_all();
#pragma unroll
    for (int k = 0; k < kDeep; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a[k][down + i] * b[k][across + j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = first_row + down + i;
      const int column = first_column + across + j;
      if (row >= product.rows() || column >= product.columns()) continue;
      put(product.c[std::int64_t{row} * product.columns() + column], sums[i][j], write);
    }
  }
}

/// A kernel for GroupedProduct.
template <typename T, typename C>
__global__ void __launch_bounds__(kPlainThreads) multiply_plainly(run::GroupedProduct call) {
  __shared__ GroupTiles tiles;
  if (call.kind != ProductKind::WeightGradient) call.write = run::Write::Overwrite;
  find_tiles<kPlainSide, kPlainSide>(call, tiles);
  for (TileWalk<kPlainSide, kPlainSide> walk(call, tiles); !walk.is_over(); walk.advance()) {
    const Tile tile = walk.tile();
    multiply_plainly(product_of<T, C>(call, tiles, tile.group), tile.row, tile.column, call.write);
  }
}

}  // namespace capo::gpu
