// A product of codes on the FP8 units of sm_90a, for blocks of 128 along the depth.
//
// The units add up products in fewer digits than fp32 has, so sums of one block are moved, times
// both operands' scales, into sums in fp32: promotion, as DeepSeek-V3's report asks for it. It also
// is where the scales come in, and takes no time of the units': a block's two warpgroups take
// turns, and one multiplies while the other promotes.
//
// A block of threads is that of product_hopper.cuh, with the same tiles of 128 x 256, slots and
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
// Scales: a forward's rows and weights have one number for each of a thread's two rows and each
// half, which threads read one block ahead. Columns have one for each of 256, which the copy engine
// brings into the slot. Tested by tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_wide.cuh"
#include "gpu/kernels/scaled_operands.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kCodesDeep = 128;  // codes of a slice, and of a block
inline constexpr int kScalesOfA = kWideHigh * 4;
inline constexpr int kScalesOfB = kWideAcross * 4;

/// Shared memory that the launch gives: slots and chunks, then the scales of each slot.
[[nodiscard]] __host__ __device__ constexpr int scaled_bytes(WideFor what) {
  const WideShape shape = shape_for(what);
  const bool brings_scales = what == WideFor::ManyRows;
  return shape.bytes() + (brings_scales ? shape.slots * (kScalesOfA + kScalesOfB) : 0);
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
      if (call_.write == run::Write::Add) {
        put_tile<run::Write::Add>(tile, sums);
      } else {
        put_tile<run::Write::Overwrite>(tile, sums);
      }
    }
  }

 private:
  using Walk = TileWalk<kWideHigh, kWideAcross>;
  static constexpr int kHalfAcross = kWideAcross / 2;
  // From one 32 of depth to the next, in units of 16 bytes; and from one half of B to the other.
  static constexpr int kStep = 32 / 16;
  static constexpr int kOtherHalf = kHalfAcross * kCodesDeep / 16;

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
    if constexpr (kSumsRows) {
      const int block = depths_.first_block[tile.group] + slice;
      const int of_a = 4 * min(kWideHigh, static_cast<int>(call_.out) - tile.row);
      const int of_b = 4 * min(kWideAcross, static_cast<int>(call_.in) - tile.column);
      arrive_expecting(full, kShape.slot_bytes() + of_a + of_b);
      copy_box(a, &ring.a[0], tile.row, block * kCodesDeep, full);
      copy_box(b, &ring.b[0], tile.column, block * kCodesDeep, full);
      const std::uint32_t scales = scales_address(slot);
      copy_bytes(scales, scales_of(sides_.a) + block * call_.out + tile.row, of_a, full);
      copy_bytes(scales + kScalesOfA, scales_of(sides_.b) + block * call_.in + tile.column, of_b,
                 full);
    } else {
      const int first = shared_.tiles.first_row[tile.group] + tile.row;
      const int below = tile.group * static_cast<int>(call_.out) + tile.column;
      arrive_expecting(full, kShape.slot_bytes());
      copy_box(a, &ring.a[0], first, slice * kCodesDeep, full);
      copy_box(b, &ring.b[0], below, slice * kCodesDeep, full);
    }
  }
  [[nodiscard]] static __device__ const float* scales_of(const run::Codes& codes) {
    return static_cast<const float*>(codes.scales);
  }

  // --- products ---

  // The scales of a block that a thread needs of rows and of weights: of its two rows, and of the
  // two halves of columns.
  struct RowScales {
    float rows[2];
    float halves[2];
  };
  // Where a thread finds them, of block 0.
  struct RowScalePlaces {
    const float* row;
    const float* half;
    int second_row;   // scales further; 0 if it is not there
    int second_half;  // likewise
  };
  [[nodiscard]] __device__ RowScalePlaces places_of(const Tile& tile) const {
    const int first = shared_.tiles.first_row[tile.group];
    const int last = shared_.tiles.first_row[tile.group + 1] - 1;
    const int row = min(first + tile.row + row_of_thread(), last);
    const auto across = static_cast<int>(run::whole_blocks(call_.out, kHalfAcross));
    const std::int64_t group = tile.group * std::int64_t{across} * parts(call_.in, kCodesDeep);
    const int half = tile.column / kHalfAcross;
    return {scales_of(sides_.a) + row, scales_of(sides_.b) + group + half, min(row + 8, last) - row,
            half + 1 < across ? 1 : 0};
  }
  [[nodiscard]] __device__ RowScales scales_at(const RowScalePlaces& places, int block) const {
    const float* const row = places.row + block * call_.rows.count;
    const float* const half = places.half + block * run::whole_blocks(call_.out, kHalfAcross);
    return {{row[0], row[places.second_row]}, {half[0], half[places.second_half]}};
  }
  // The first row of a tile that a thread has sums of; the second is eight further.
  [[nodiscard]] static __device__ int row_of_thread() {
    return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x % 32 / 4);
  }

  // Adds up all blocks of a tile; this warpgroup's half of it.
  __device__ void multiply(const Tile& tile, WideSums& sums) {
    const auto skipped = static_cast<std::uint32_t>(half_of_thread() * kShape.a_bytes() / kHalves);
    const int slices = slices_of(tile.group);
    RowScalePlaces places;
    RowScales next;
    if constexpr (!kSumsRows) {
      places = places_of(tile);
      next = scales_at(places, 0);
    }
    for (int slice = 0; slice < slices; ++slice) {
      const int slot = turn_.at();
      const RowScales scales = next;
      if constexpr (!kSumsRows) next = scales_at(places, min(slice + 1, slices - 1));
      wait_for(shared_address(&shared_.slot_full[slot]), turn_.parity());
      const std::uint64_t a = shared_matrix(slot_address(slot) + skipped, 0);
      const std::uint64_t b = shared_matrix(slot_address(slot) + kShape.a_bytes(), 0);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        HalfSums block;
        begin_products();
#pragma unroll
        for (int step = 0; step < kCodesDeep / 32; ++step) {
          multiply_codes(block, a + static_cast<std::uint64_t>(step * kStep),
                         b + static_cast<std::uint64_t>(half * kOtherHalf + step * kStep),
                         step == 0);
        }
        close_products();
        wait_for_products<0>();
        if constexpr (kSumsRows) {
          promote_columns(block, slot, half, sums);
          if (half == 1) leave(slot);
        } else {
          if (half == 1) leave(slot);
          promote_rows(block, scales, half, sums);
        }
      }
      turn_.advance();
    }
  }
  __device__ void leave(int slot) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.slot_empty[slot]));
  }

  static __device__ void promote_rows(const HalfSums& block, const RowScales& scales, int half,
                                      WideSums& sums) {
    const float first = scales.rows[0] * scales.halves[half];
    const float second = scales.rows[1] * scales.halves[half];
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
#pragma unroll
      for (int eight = 0; eight < 8; ++eight) {
        float(&to)[4] = sums[half * 2 + piece][eight];
        const float(&from)[4] = block[piece][eight];
        to[0] += first * from[0];
        to[1] += first * from[1];
        to[2] += second * from[2];
        to[3] += second * from[3];
      }
    }
  }
  __device__ void promote_columns(const HalfSums& block, int slot, int half, WideSums& sums) const {
    const std::uint32_t scales = scales_address(slot);
    const float first = __uint_as_float(load_shared(scales + row_of_thread() * 4));
    const float second = __uint_as_float(load_shared(scales + row_of_thread() * 4 + 32));
    const std::uint32_t columns =
        scales + kScalesOfA + half * kHalfAcross * 4 + threadIdx.x % 4 * 8;
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
#pragma unroll
      for (int eight = 0; eight < 8; ++eight) {
        const float2 scale = load_shared_pair(columns + (piece * 64 + eight * 8) * 4);
        float(&to)[4] = sums[half * 2 + piece][eight];
        const float(&from)[4] = block[piece][eight];
        to[0] += first * scale.x * from[0];
        to[1] += first * scale.y * from[1];
        to[2] += second * scale.x * from[2];
        to[3] += second * scale.y * from[3];
      }
    }
  }

  // --- results ---

  template <run::Write kWrite>
  __device__ void put_tile(const Tile& tile, const WideSums& sums) {
    const Product<C, C> product = product_of<C, C>(call_, shared_.tiles, tile.group);
    if constexpr (kSumsRows) {
      if (is_aligned(product.c)) {
        const int end = min(tile.column + kWideAcross, static_cast<int>(call_.in));
        chunks_.template put_results<kWrite>(end - tile.column, sums);
      } else {
        put_one_by_one<kWrite>(product, tile, sums);
      }
      return;
    }
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 * 16;
#pragma unroll
    for (int i = 0; i < kWideAcross / kWarpSide; ++i) {
      write_band<run::Write::Overwrite>(product, row, tile.column + i * kWarpSide, sums[i]);
    }
  }
  template <run::Write kWrite>
  static __device__ void put_one_by_one(const Product<C, C>& product, const Tile& tile,
                                        const WideSums& sums) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < 4 * 8 * 4; ++i) {
      const int row = tile.row + row_of_thread() + i % 4 / 2 * 8;
      const int column = tile.column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (row >= product.rows() || column >= product.columns()) continue;
      put(product.c[std::int64_t{row} * product.columns() + column], sums[i / 32][i / 4 % 8][i % 4],
          kWrite);
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
