// All products share this: the matrices of a group and the tiles of its result.
//
// Every product is C = A B: C (rows, columns) sums over `depth`. An operand is seen as count x
// depth, where count is C's rows for A and C's columns for B; either lies contiguous in memory.
//
//   kind            C    A    B    contiguous in A, B
//   Forward         y    x    w    depth, depth
//   InputGradient   x    y    w    depth, count
//   WeightGradient  w    y    x    count, count
//
// Tiles are numbered through all groups by their sizes on the device at this moment; within a group
// in bands of kBand tiles down, so that tiles that run at the same time share both operands. A
// block takes every gridDim-th tile. Groups without anything to write have no tiles.
//
// Shared memory: GroupTiles, 8.2 KB. Tested by tests/gpu/products_test.cpp.

#pragma once

#include "gpu/kernels/row_groups.cuh"

#include <cstdint>

namespace capo::gpu {

using ProductKind = run::GroupedProduct::Kind;

template <typename T>
struct Operand {
  const T* data;
  std::int64_t step;        ///< in elements, from one of count to the next
  std::int64_t depth_step;  ///< likewise along the depth
  int count;
  int depth;
};

/// The matrices of one group.
template <typename T, typename C>
struct Product {
  Operand<T> a;
  Operand<T> b;
  C* c;  ///< rows are contiguous, one behind the other

  [[nodiscard]] __device__ int rows() const { return a.count; }
  [[nodiscard]] __device__ int columns() const { return b.count; }
  [[nodiscard]] __device__ int depth() const { return a.depth; }
};

/// A part of a group's C, by its first row and column.
struct Tile {
  int group;
  int row;
  int column;
};

/// Columns of C, which all groups share.
[[nodiscard]] __host__ __device__ inline std::int64_t columns_of(const run::GroupedProduct& call) {
  return call.kind == ProductKind::Forward ? call.out : call.in;
}

struct GroupTiles : RowGroups {
  int first_tile[kMostGroups + 1];
};

[[nodiscard]] __host__ __device__ constexpr std::int64_t parts(std::int64_t whole,
                                                               std::int64_t part) {
  return (whole + part - 1) / part;
}

/// No fewer than there will be, whatever the sizes are.
template <int kHigh, int kWide>
[[nodiscard]] std::int64_t most_tiles(const run::GroupedProduct& call) {
  const std::int64_t across = parts(columns_of(call), kWide);
  if (call.kind == ProductKind::WeightGradient) {
    return call.rows.groups * parts(call.out, kHigh) * across;
  }
  return (call.rows.count / kHigh + call.rows.groups) * across;
}

/// For a whole block, which waits for it.
template <int kHigh, int kWide>
__device__ void find_tiles(const run::GroupedProduct& call, GroupTiles& tiles) {
  if (threadIdx.x < 32) {
    const auto across = static_cast<int>(parts(columns_of(call), kWide));
    const auto size = [&](int group) { return size_of(call.rows, group); };
    write_sums(groups_of(call.rows), tiles.first_row, size);
    write_sums(groups_of(call.rows), tiles.first_tile, [&](int group) {
      if (call.kind != ProductKind::WeightGradient) {
        return static_cast<int>(parts(size(group), kHigh)) * across;
      }
      const bool stays = size(group) == 0 && call.write == run::Write::Add;
      return stays ? 0 : static_cast<int>(parts(call.out, kHigh)) * across;
    });
  }
  __syncthreads();
}

template <typename T, typename C>
__device__ Product<T, C> product_of(const run::GroupedProduct& call, const RowGroups& groups,
                                    int group) {
  const int first = groups.first_row[group];
  const int size = groups.first_row[group + 1] - first;
  const auto in = static_cast<int>(call.in);
  const auto out = static_cast<int>(call.out);
  T* x = static_cast<T*>(call.x) + first * call.in;
  T* y = static_cast<T*>(call.y) + first * call.out;
  void* w = call.w[group];
  if (call.kind == ProductKind::WeightGradient) {
    return {{y, 1, call.out, out, size}, {x, 1, call.in, in, size}, static_cast<C*>(w)};
  }
  const T* weight = static_cast<const T*>(w);
  void* result = call.kind == ProductKind::Forward ? y : x;
  if (call.kind == ProductKind::Forward) {
    return {{x, call.in, 1, size, in}, {weight, call.in, 1, out, in}, static_cast<C*>(result)};
  }
  return {{y, call.out, 1, size, out}, {weight, 1, call.in, in, out}, static_cast<C*>(result)};
}

/// The tiles of one block, in ascending order.
template <int kHigh, int kWide>
class TileWalk {
 public:
  __device__ TileWalk(const run::GroupedProduct& call, const GroupTiles& tiles)
      : call_(call), tiles_(tiles), at_(static_cast<int>(blockIdx.x)) {}

  [[nodiscard]] __device__ bool is_over() const {
    return at_ >= tiles_.first_tile[groups_of(call_.rows)];
  }
  __device__ void advance() { at_ += static_cast<int>(gridDim.x); }

  /// Asked only while it is not over.
  [[nodiscard]] __device__ Tile tile() {
    while (at_ >= tiles_.first_tile[group_ + 1]) ++group_;
    constexpr int kBand = 16;
    const auto across = static_cast<int>(parts(columns_of(call_), kWide));
    const int in_group = at_ - tiles_.first_tile[group_];
    const int down = (tiles_.first_tile[group_ + 1] - tiles_.first_tile[group_]) / across;
    const int first_down = in_group / (kBand * across) * kBand;
    const int in_band = in_group - first_down * across;
    const int band = min(kBand, down - first_down);
    return {group_, (first_down + in_band % band) * kHigh, in_band / band * kWide};
  }

 private:
  const run::GroupedProduct& call_;
  const GroupTiles& tiles_;
  int at_;
  int group_ = 0;
};

}  // namespace capo::gpu
