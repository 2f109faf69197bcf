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
// A group of few rows waits for its weights, one of many for its products. Where there is room for
// no more rows than a tile a group on average and some have more, tiles are numbered by the sizes
// of groups, and every second one is taken from the end: memory and tensor cores are busy at a
// time. Gradients of weights are not mixed, which made them slower (docs/gpu.md).
//
// A gradient of weights goes on with the rows of further batches before its sum is written. They
// lie in the kernel's parameter, which a block indexes in place: a copy of it would be one for each
// thread. Only the first batch has its groups' rows in shared memory; those of the others are added
// up where they are asked for.
//
// Shared memory: GroupTiles, 8.5 KB. Tested by tests/gpu/products_test.cpp.

#pragma once

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/parts.h"
#include "gpu/kernels/row_groups.cuh"
#include "run/kernels/grouped_product.h"

#include <cstdint>

namespace capo::gpu {

using ProductKind = run::GroupedProduct::Kind;
using Batch = run::GroupedProduct::Batch;

template <typename T>
struct Operand {
  const T* data;
  std::int64_t step;        ///< in elements, from one of count to the next
  std::int64_t depth_step;  ///< likewise along the depth
  int count;
  int depth;

  [[nodiscard]] __device__ bool is_along_depth() const { return depth_step == 1; }
  [[nodiscard]] __device__ float number(int one, int at) const {
    return to_float(data[one * step + at * depth_step]);
  }
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

/// The most groups that are sorted by size.
inline constexpr int kMostMixed = 256;

struct GroupTiles : RowGroups {
  int first_tile[kMostGroups + 1];        ///< by place
  std::uint8_t mixed_groups[kMostMixed];  ///< by place, if they are mixed: the largest first
  bool are_mixed;
  int end;  ///< tiles of all groups

  [[nodiscard]] __device__ int group_at(int place) const {
    return are_mixed ? mixed_groups[place] : place;
  }
};

/// No fewer than there will be, whatever the sizes are.
template <int kHigh, int kWide>
[[nodiscard]] std::int64_t most_tiles(const run::GroupedProduct& call) {
  const std::int64_t across = parts(columns_of(call), kWide);
  if (call.kind == ProductKind::WeightGradient) {
    return call.rows.groups * parts(call.out, kHigh) * across;
  }
  return (call.rows.count / kHigh + call.rows.groups) * across;
}

/// Rows of a group in a further batch.
__device__ inline int size_of(const Batch& batch, int group) {
  return static_cast<int>(batch.sizes == nullptr ? batch.count : batch.sizes[group]);
}

/// Rows of a group in all further batches.
__device__ inline int size_of_further(const run::GroupedProduct& call, const Batch* batches,
                                      int group) {
  int sum = 0;
  for (int at = 0; at < call.further; ++at) sum += size_of(batches[at], group);
  return sum;
}

/// For one whole warp; the sums of rows are there.
template <int kHigh>
__device__ void mix_groups(const run::GroupedProduct& call, GroupTiles& tiles) {
  const int groups = groups_of(call.rows);
  const auto size = [&](int group) { return tiles.first_row[group + 1] - tiles.first_row[group]; };
  __syncwarp();
  const bool may_mix = call.kind != ProductKind::WeightGradient && groups <= kMostMixed &&
                       call.rows.count <= std::int64_t{kHigh} * groups;
  int largest = 0;
  for (auto group = static_cast<int>(threadIdx.x); may_mix && group < groups; group += 32) {
    largest = max(largest, size(group));
  }
  const bool mixes = may_mix && __reduce_max_sync(0xffffffffU, largest) > kHigh;
  for (auto group = static_cast<int>(threadIdx.x); mixes && group < groups; group += 32) {
    int place = 0;
    for (int other = 0; other < groups; ++other) {
      const bool is_before =
          size(other) > size(group) || (size(other) == size(group) && other < group);
      place += is_before ? 1 : 0;
    }
    tiles.mixed_groups[place] = static_cast<std::uint8_t>(group);
  }
  if (threadIdx.x == 0) tiles.are_mixed = mixes;
  __syncwarp();
}

/// For a whole block, which waits for it. `batches` are those of the call.
template <int kHigh, int kWide>
__device__ void find_tiles(const run::GroupedProduct& call, const Batch* batches,
                           GroupTiles& tiles) {
  if (threadIdx.x < 32) {
    const auto across = static_cast<int>(parts(columns_of(call), kWide));
    const auto size = [&](int group) { return size_of(call.rows, group); };
    write_sums(groups_of(call.rows), tiles.first_row, size);
    mix_groups<kHigh>(call, tiles);
    const int end = write_sums(groups_of(call.rows), tiles.first_tile, [&](int place) {
      const int group = tiles.group_at(place);
      if (call.kind != ProductKind::WeightGradient) {
        return static_cast<int>(parts(size(group), kHigh)) * across;
      }
      const bool stays = call.write == run::Write::Add && size(group) == 0 &&
                         size_of_further(call, batches, group) == 0;
      return stays ? 0 : static_cast<int>(parts(call.out, kHigh)) * across;
    });
    if (threadIdx.x == 0) tiles.end = end;
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

/// The rows of a group in a further batch.
struct BatchRows {
  int first;
  int count;
};

/// For one whole warp.
__device__ inline BatchRows rows_of(const Batch& batch, int group) {
  if (batch.sizes == nullptr) return {0, static_cast<int>(batch.count)};
  int before = 0;
  for (int at = static_cast<int>(threadIdx.x % 32); at < group; at += 32) {
    before += static_cast<int>(batch.sizes[at]);
  }
  return {__reduce_add_sync(0xffffffffU, before), size_of(batch, group)};
}

/// The matrices of a group's gradient of weights over a further batch; for whole warps.
template <typename T, typename C>
__device__ Product<T, C> product_of(const run::GroupedProduct& call, const Batch& batch,
                                    int group) {
  const BatchRows rows = rows_of(batch, group);
  const auto in = static_cast<int>(call.in);
  const auto out = static_cast<int>(call.out);
  const T* x = static_cast<const T*>(batch.x) + rows.first * call.in;
  const T* y = static_cast<const T*>(batch.y) + rows.first * call.out;
  return {{y, 1, call.out, out, rows.count},
          {x, 1, call.in, in, rows.count},
          static_cast<C*>(call.w[group])};
}

/// The place of a tile among those of its group, which are numbered in bands.
struct InBand {
  int down;
  int across;
};
template <int kBand>
[[nodiscard]] __device__ InBand in_band_of(int tile, int down, int across) {
  const int first_down = down <= kBand ? 0 : tile / (kBand * across) * kBand;
  const int in_band = tile - first_down * across;
  const int band = min(kBand, down - first_down);
  const int column = in_band / band;
  return {first_down + in_band - column * band, column};
}

/// The tiles of one block, or of one cluster of blocks.
template <int kHigh, int kWide, int kBand = 16, int kBlocks = 1>
class TileWalk {
 public:
  __device__ TileWalk(const run::GroupedProduct& call, const GroupTiles& tiles)
      : call_(call), tiles_(tiles), at_(static_cast<int>(blockIdx.x) / kBlocks) {}

  [[nodiscard]] __device__ bool is_over() const { return at_ >= tiles_.end; }
  __device__ void advance() { at_ += static_cast<int>(gridDim.x) / kBlocks; }

  /// Asked only while it is not over.
  [[nodiscard]] __device__ Tile tile() {
    const auto across = static_cast<int>(parts(columns_of(call_), kWide));
    const int at = !tiles_.are_mixed ? at_ : at_ % 2 == 0 ? at_ / 2 : tiles_.end - 1 - at_ / 2;
    while (at >= tiles_.first_tile[place_ + 1]) ++place_;
    while (at < tiles_.first_tile[place_]) --place_;
    const int first = tiles_.first_tile[place_];
    const InBand in_band =
        in_band_of<kBand>(at - first, (tiles_.first_tile[place_ + 1] - first) / across, across);
    return {tiles_.group_at(place_), in_band.down * kHigh, in_band.across * kWide};
  }

 private:
  const run::GroupedProduct& call_;
  const GroupTiles& tiles_;
  int at_;
  int place_ = 0;
};

}  // namespace capo::gpu
