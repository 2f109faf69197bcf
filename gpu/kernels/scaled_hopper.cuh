// A product of codes on the FP8 units of sm_90a, for blocks of 128 along the depth.
//
// The units add up products in fewer digits than fp32 has, so sums of one block are moved, times
// both operands' scales, into sums in fp32: promotion, as DeepSeek-V3's report asks for it. It also
// is where the scales come in. One of a block's two warpgroups promotes while the other multiplies;
// to make them take turns by a barrier was tried, and is no faster. Blocks of 32 are for
// converted_hopper.cuh, since they would be promoted four times as often.
//
// A block of threads is that of product_rows.cuh, with the same tiles of 128 x 256, slots and
// chunks, since 128 codes take as many bytes as 64 numbers of 16 bits. Other than there both
// operands always lie along the depth, and each is one matrix for all groups:
//
//   A   rows of all groups, or columns over all groups' depths
//   B   the weights of all groups one below the other, or columns over all groups' depths
//
// so that two descriptors serve a whole call. Rows of the next group that come with a tile are
// multiplied and not written; depths end with a group's last block, whose padding is zeros.
//
// Sums of a thread are two halves of 64 x 128 of a warpgroup, one after the other: the sums of a
// block, 64 numbers, are all that fits beside the 128 of the tile.
//
// Scales: rows begin anywhere, so each thread reads those of its two rows, one slice ahead. Those
// of weights in squares are one number for each half, which it reads as well. All others are one
// for each of so many columns, which the copy engine brings into the slot:
//
//   slot s   scales of A (128 floats) | of B (256 floats)
//
// Tested by tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/scaled_operands.cuh"
#include "gpu/kernels/wide_results.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kCodesDeep = 128;  ///< codes of a slice
inline constexpr int kScalesOfA = kWideHigh * 4;
inline constexpr int kScalesOfB = kWideAcross * 4;

/// Shared memory that the launch gives: slots and chunks, then the scales of each slot where the
/// copy engine brings them.
[[nodiscard]] __host__ __device__ constexpr int scaled_bytes(WideFor what) {
  const WideShape shape = shape_for(what);
  return shape.bytes() + (what == WideFor::ManyRows ? shape.slots * (kScalesOfA + kScalesOfB) : 0);
}

template <typename C, WideFor kFor>
class WideScaled {
 public:
  using Shared = WideShared<kFor>;
  static constexpr WideShape kShape = shape_for(kFor);
  static constexpr bool kSumsRows = kFor != WideFor::Rows;
  static_assert(kShape.slot_bytes() == (kWideHigh + kWideAcross) * kCodesDeep);

  /// `call` is what seen() makes of the call.
  __device__ WideScaled(const run::GroupedProduct& call, const ScaledSides& sides, Shared& shared,
                        const DepthGroups& depths, const void* slots)
      : call_(call),
        sides_(sides),
        shared_(shared),
        depths_(depths),
        slots_(shared_address(slots)),
        chunks_(call, shared, slot_address(kShape.slots)) {}

  /// For warp 0 of the third warpgroup.
  __device__ void copy_operands() {
    make_maps();
    Rotation<kShape.slots> turn;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const int slices = slices_of(tile.group);
      for (int slice = 0; slice < slices; ++slice) {
        wait_for(shared_address(&shared_.slot_empty[turn.at()]), turn.parity() ^ 1);
        if (threadIdx.x % 32 == 0) copy_slice(tile, slice, turn.at());
        __syncwarp();
        turn.advance();
      }
    }
  }
  /// For warps 1 to 3, which have chunks to ask for.
  [[nodiscard]] __device__ WideChunks<C, kFor>& chunks() { return chunks_; }

  /// For the warpgroups that multiply. The first turn is given to the first, and the last turn,
  /// which nobody needs, is taken by it.
  __device__ void multiply_all() {
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      WideSums sums = {};
      multiply(tile, sums);
      put_wide_tile(call_, shared_.tiles, tile, chunks_, sums);
    }
  }

 private:
  using Walk = TileWalk<kWideHigh, kWideAcross>;
  static constexpr int kHalfAcross = kWideAcross / 2;
  // From one 32 of depth to the next, in units of 16 bytes; and from one half of B to the other.
  static constexpr int kStep = 32 / 16;
  static constexpr int kOtherHalf = kHalfAcross * kCodesDeep / 16;
  static_assert(kCodesDeep == run::block_depth(run::Scaling::Block));

  [[nodiscard]] __device__ MapRing& maps() const { return map_rings.rings[shared_.ring]; }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kShape.slot_bytes());
  }
  [[nodiscard]] __device__ std::uint32_t scales_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(kShape.bytes() + slot * (kScalesOfA + kScalesOfB));
  }
  [[nodiscard]] __device__ int slices_of(int group) const {
    if constexpr (kSumsRows) return depths_.first_block[group + 1] - depths_.first_block[group];
    return static_cast<int>(parts(call_.in, kCodesDeep));
  }

  // --- copies ---

  __device__ void make_maps() const {
    MapRing& ring = maps();
    const auto in = static_cast<int>(call_.in);
    const auto out = static_cast<int>(call_.out);
    if constexpr (kSumsRows) {
      const auto depth = static_cast<int>(run::depth_of(call_.rows));
      make_map({sides_.a.codes, out, depth, 1, kWideHigh}, shared_.a_draft, &ring.a[0]);
      make_map({sides_.b.codes, in, depth, 1, kWideAcross}, shared_.b_draft, &ring.b[0]);
    } else {
      const int groups = groups_of(call_.rows);
      const int rows = shared_.tiles.first_row[groups];
      make_map({sides_.a.codes, rows, in, 1, kWideHigh}, shared_.a_draft, &ring.a[0]);
      make_map({sides_.b.codes, groups * out, in, 1, kWideAcross}, shared_.b_draft, &ring.b[0]);
    }
  }

  __device__ void copy_slice(const Tile& tile, int slice, int slot) const {
    const std::uint32_t full = shared_address(&shared_.slot_full[slot]);
    const std::uint32_t a = slot_address(slot);
    const std::uint32_t b = a + kShape.a_bytes();
    const MapRing& ring = maps();
    const int of_a = kSumsRows ? scales_from(tile.row, kWideHigh, call_.out) : 0;
    const int of_b = kSumsRows ? scales_from(tile.column, kWideAcross, call_.in) : 0;
    arrive_expecting(full, kShape.slot_bytes() + of_a + of_b);
    if constexpr (kSumsRows) {
      const std::int64_t block = depths_.first_block[tile.group] + slice;
      const auto depth = static_cast<int>(block) * kCodesDeep;
      const std::uint32_t scales = scales_address(slot);
      copy_box(a, &ring.a[0], tile.row, depth, full);
      copy_box(b, &ring.b[0], tile.column, depth, full);
      copy_bytes(scales, scales_of(sides_.a) + block * call_.out + tile.row, of_a, full);
      copy_bytes(scales + kScalesOfA, scales_of(sides_.b) + block * call_.in + tile.column, of_b,
                 full);
    } else {
      const int first = shared_.tiles.first_row[tile.group] + tile.row;
      const int below = tile.group * static_cast<int>(call_.out) + tile.column;
      copy_box(a, &ring.a[0], first, slice * kCodesDeep, full);
      copy_box(b, &ring.b[0], below, slice * kCodesDeep, full);
    }
  }
  // Bytes of the scales of a tile's vectors.
  [[nodiscard]] static __device__ int scales_from(int first, int most, std::int64_t count) {
    return min(most, static_cast<int>(count) - first) * 4;
  }
  [[nodiscard]] static __device__ const float* scales_of(const run::Codes& codes) {
    return static_cast<const float*>(codes.scales);
  }

  // --- products ---

  // The scales of a slice that a thread reads by itself: of its two rows, and of the two halves of
  // columns, which are squares of weights.
  struct RowScales {
    float rows[2];
    float halves[2];
  };
  // A thread finds them here, of slice 0.
  struct RowScalePlaces {
    const float* row;
    const float* half;
    int second_row;   // further; 0 if it is not there
    int second_half;  // likewise
  };
  [[nodiscard]] __device__ RowScalePlaces places_of(const Tile& tile) const {
    const int first = shared_.tiles.first_row[tile.group];
    const int last = shared_.tiles.first_row[tile.group + 1] - 1;
    const int row = min(first + tile.row + row_of_half(), last);
    const auto across = static_cast<int>(parts(call_.out, kHalfAcross));
    const std::int64_t group = tile.group * across * parts(call_.in, kCodesDeep);
    const int half = tile.column / kHalfAcross;
    return {scales_of(sides_.a) + row, scales_of(sides_.b) + group + half, min(row + 8, last) - row,
            half + 1 < across ? 1 : 0};
  }
  [[nodiscard]] __device__ RowScales scales_at(const RowScalePlaces& places, int slice) const {
    const float* const row = places.row + slice * call_.rows.count;
    const float* const half = places.half + slice * parts(call_.out, kHalfAcross);
    return {{row[0], row[places.second_row]}, {half[0], half[places.second_half]}};
  }

  // Adds up all slices of a tile; this warpgroup's half of it.
  __device__ void multiply(const Tile& tile, WideSums& sums) {
    const auto skipped = static_cast<std::uint32_t>(half_of_thread() * kShape.a_bytes() / kHalves);
    const int slices = slices_of(tile.group);
    RowScalePlaces places = {};
    RowScales next = {};
    if constexpr (!kSumsRows) {
      places = places_of(tile);
      next = scales_at(places, 0);
    }
    for (int slice = 0; slice < slices; ++slice) {
      const int slot = turn_.at();
      const RowScales own = next;
      if constexpr (!kSumsRows) next = scales_at(places, min(slice + 1, slices - 1));
      wait_for(shared_address(&shared_.slot_full[slot]), turn_.parity());
      const std::uint64_t a = shared_matrix(slot_address(slot) + skipped, 0);
      const std::uint64_t b = shared_matrix(slot_address(slot) + kShape.a_bytes(), 0);
#pragma unroll
      for (int half = 0; half < 2; ++half) multiply_half(a, b, own, slot, half, sums);
      leave(slot);
      turn_.advance();
    }
  }
  __device__ void multiply_half(std::uint64_t a, std::uint64_t b, const RowScales& own, int slot,
                                int half, WideSums& sums) const {
    HalfSums of_block;
    begin_products();
#pragma unroll
    for (int i = 0; i < kCodesDeep / 32; ++i) {
      multiply_codes(of_block, a + static_cast<std::uint64_t>(i * kStep),
                     b + static_cast<std::uint64_t>(half * kOtherHalf + i * kStep), i == 0);
    }
    close_products();
    wait_for_products<0>();
    promote(of_block, own, slot, half, sums);
  }
  __device__ void leave(int slot) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.slot_empty[slot]));
  }

  __device__ void promote(const HalfSums& of_block, const RowScales& own, int slot, int half,
                          WideSums& sums) const {
    float2 rows;
    std::uint32_t columns = 0;
    if constexpr (kSumsRows) {
      const std::uint32_t scales = scales_address(slot);
      const std::uint32_t at = scales + static_cast<std::uint32_t>(row_of_half() * 4);
      rows = make_float2(__uint_as_float(load_shared(at)), __uint_as_float(load_shared(at + 32)));
      columns = scales + kScalesOfA +
                static_cast<std::uint32_t>(
                    (half * kHalfAcross + static_cast<int>(threadIdx.x % 4) * 2) * 4);
    } else {
      rows = make_float2(own.rows[0] * own.halves[half], own.rows[1] * own.halves[half]);
    }
#pragma unroll
    for (int eight = 0; eight < kHalfAcross / 8; ++eight) {
      float(&to)[4] = sums[half * 2 + eight / 8][eight % 8];
      const float(&from)[4] = of_block[eight / 8][eight % 8];
      const float2 scale =
          kSumsRows ? load_shared_pair(columns + static_cast<std::uint32_t>(eight * 8 * 4))
                    : make_float2(1, 1);
      to[0] += rows.x * scale.x * from[0];
      to[1] += rows.x * scale.y * from[1];
      to[2] += rows.y * scale.x * from[2];
      to[3] += rows.y * scale.y * from[3];
    }
  }

  const run::GroupedProduct& call_;
  const ScaledSides& sides_;
  Shared& shared_;
  const DepthGroups& depths_;
  std::uint32_t slots_;
  Rotation<kShape.slots> turn_;
  WideChunks<C, kFor> chunks_;
};

/// A kernel for ScaledProduct: WideFor::Rows, or ManyRows for gradients of weights.
template <typename C, WideFor kFor>
__global__ void __launch_bounds__(kWideThreads, 1)
    multiply_scaled_on_hopper(const __grid_constant__ run::ScaledProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ WideShared<kFor> shared;
  __shared__ DepthGroups depths;
  run::GroupedProduct call = seen(given);
  // So that the compiler knows.
  call.kind = kFor == WideFor::Rows ? ProductKind::Forward : ProductKind::WeightGradient;
  if constexpr (kFor == WideFor::Rows) call.write = run::Write::Overwrite;
  const ScaledSides sides = operands_of(given);
  WideScaled<C, kFor> product(call, sides, shared, depths, slots);
  const bool prepares = threadIdx.x == kWideThreads - 1;
  if (prepares) shared.prepare();
  if (threadIdx.x >= 32 && threadIdx.x < 64) find_depths(call.rows, depths);
  find_tiles<kWideHigh, kWideAcross>(call, nullptr, shared.tiles);
  if (TileWalk<kWideHigh, kWideAcross>(call, shared.tiles).is_over()) {
    if (prepares) shared.finish();
    return;
  }
  // The registers of 3 x 168 are divided anew: 40 + 2 x 232.
  if (threadIdx.x < kHalves * kWarpgroup) {
    take_registers<232>();
    product.multiply_all();
  } else {
    give_registers<40>();
    const int warp = static_cast<int>(threadIdx.x) / 32 - kHalves * kWarpgroup / 32;
    if (warp == 0) product.copy_operands();
    if constexpr (shape_for(kFor).chunks > 0) {
      if (warp == 1) product.chunks().copy_results_before();
      if (warp >= 2 && threadIdx.x % 32 == 0) product.chunks().store_results(warp - 2);
    }
    __syncwarp();
  }
  __syncthreads();
  if (prepares) shared.finish();
#else
  __trap();
#endif
}

}  // namespace capo::gpu
