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
template <typename Operand>
__device__ void load_slice(const Operand& operand, int first, int first_depth, Slice& slice) {
  for (auto at = static_cast<int>(threadIdx.x); at < kDeep * kPlainSide; at += kPlainThreads) {
    const bool along_depth = operand.is_along_depth();
    const int depth = along_depth ? at % kDeep : at / kPlainSide;
    const int one = along_depth ? at / kDeep : at % kPlainSide;
    const bool is_there = first + one < operand.count && first_depth + depth < operand.depth;
    slice[depth][one] = is_there ? operand.number(first + one, first_depth + depth) : 0.0F;
  }
}

__device__ inline int row_of_thread() {
  return static_cast<int>(threadIdx.x) / 16 * 4;
}
__device__ inline int column_of_thread() {
  return static_cast<int>(threadIdx.x) % 16 * 4;
}

// Goes on with a thread's sums along the depth of two operands.
template <typename Operand>
__device__ void add_up(const Operand& of_rows, const Operand& of_columns, int first_row,
                       int first_column, float (&sums)[4][4]) {
  __shared__ Slice a;
  __shared__ Slice b;
  const int down = row_of_thread();
  const int across = column_of_thread();
  for (int depth = 0; depth < of_rows.depth; depth += kDeep) {
    wait_for_all();  // somebody may still be reading the slices before
    load_slice(of_rows, first_row, depth, a);
    load_slice(of_columns, first_column, depth, b);
    wait_for_all();
#pragma unroll
    for (int k = 0; k < kDeep; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a[k][down + i] * b[k][across + j];
      }
    }
  }
}

}  // namespace plain

/// For the first kPlainThreads threads of a block; `batches` are those of the call. Columns from
/// `columns_end` on are left.
template <typename T, typename C>
__device__ void multiply_plainly(const run::GroupedProduct& call, const Batch* batches,
                                 const Product<T, C>& product, const Tile& tile, int columns_end) {
  float sums[4][4] = {};
  plain::add_up(product.a, product.b, tile.row, tile.column, sums);
  for (int at = 0; at < call.further; ++at) {
    const Product<T, C> further = product_of<T, C>(call, batches[at], tile.group);
    plain::add_up(further.a, further.b, tile.row, tile.column, sums);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = tile.row + plain::row_of_thread() + i;
      const int column = tile.column + plain::column_of_thread() + j;
      if (row >= product.rows() || column >= columns_end) continue;
      put(product.c[std::int64_t{row} * product.columns() + column], sums[i][j], call.write);
    }
  }
}

template <typename T, typename C>
__device__ void multiply_plainly(const run::GroupedProduct& call, const Batch* batches,
                                 const Product<T, C>& product, const Tile& tile) {
  multiply_plainly(call, batches, product, tile, product.columns());
}

/// A kernel for GroupedProduct.
template <typename T, typename C>
__global__ void __launch_bounds__(kPlainThreads)
    multiply_plainly(const __grid_constant__ run::GroupedProduct given) {
  __shared__ GroupTiles tiles;
  run::GroupedProduct call = given;
  if (call.kind != ProductKind::WeightGradient) {
    call.write = run::Write::Overwrite;
    call.further = 0;
  }
  find_tiles<kPlainSide, kPlainSide>(call, given.batches, tiles);
  for (TileWalk<kPlainSide, kPlainSide> walk(call, tiles); !walk.is_over(); walk.advance()) {
    const Tile tile = walk.tile();
    multiply_plainly(call, given.batches, product_of<T, C>(call, tiles, tile.group), tile);
  }
}

}  // namespace capo::gpu
