// A product of codes on the FP8 units of sm_90a, for blocks of 128 or of 32 along the depth.
//
// The units add up products in fewer digits than fp32 has, so sums of one block are moved, times
// both operands' scales, into sums in fp32: promotion, as DeepSeek-V3's report asks for it. It also
// is where the scales come in. One of a block's two warpgroups promotes while the other multiplies;
// to make them take turns by a barrier was tried, and is no faster. sm_90 has no instruction for
// the blocks of 32 of MXFP8, which are promoted four times as often.
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
// Scales: rows begin anywhere, so each thread reads those of its two rows, one slice ahead. Those
// of weights in squares are one number for each half, which it reads as well. All others are one
// for each of so many columns, which the copy engine brings into the slot:
//
//   slot s   scales of A (4 blocks of 128 bytes, or 128 floats) | of B (of 256)
//
// Tested by tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_wide.cuh"
#include "gpu/kernels/scaled_operands.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kCodesDeep = 128;  ///< codes of a slice
inline constexpr int kScalesOfA = kWideHigh * 4;
inline constexpr int kScalesOfB = kWideAcross * 4;

/// Whether the copy engine brings scales into slots.
[[nodiscard]] __host__ __device__ constexpr bool brings_scales(run::Scaling scaling, WideFor what) {
  return what == WideFor::ManyRows || scaling == run::Scaling::Mxfp8;
}
/// Shared memory that the launch gives: slots and chunks, then the scales of each slot.
[[nodiscard]] __host__ __device__ constexpr int scaled_bytes(run::Scaling scaling, WideFor what) {
  const WideShape shape = shape_for(what);
  return shape.bytes() +
         (brings_scales(scaling, what) ? shape.slots * (kScalesOfA + kScalesOfB) : 0);
}

template <run::Scaling kScaling, typename C, WideFor kFor>
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
  static constexpr bool kIsBlock = kScaling == run::Scaling::Block;
  static constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
  static constexpr int kBlocks = kCodesDeep / kDeep;  // of a slice
  static constexpr int kScaleBytes = kIsBlock ? 4 : 1;
  static constexpr bool kHasSquares = kIsBlock && !kSumsRows;

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
    const Line of_a =
        kSumsRows ? line_of_columns(sides_.a, tile, call_.out, tile.row, kWideHigh) : Line{};
    const Line of_b = kHasSquares ? Line{}
                      : kSumsRows
                          ? line_of_columns(sides_.b, tile, call_.in, tile.column, kWideAcross)
                          : line_of_weights(tile);
    const int blocks = blocks_of(slice);
    arrive_expecting(full, kShape.slot_bytes() + blocks * (of_a.bytes + of_b.bytes));
    if constexpr (kSumsRows) {
      const int depth = (depths_.first_block[tile.group] + slice) * kCodesDeep;
      copy_box(a, &ring.a[0], tile.row, depth, full);
      copy_box(b, &ring.b[0], tile.column, depth, full);
    } else {
      const int first = shared_.tiles.first_row[tile.group] + tile.row;
      const int below = tile.group * static_cast<int>(call_.out) + tile.column;
      copy_box(a, &ring.a[0], first, slice * kCodesDeep, full);
      copy_box(b, &ring.b[0], below, slice * kCodesDeep, full);
    }
    const std::uint32_t scales = scales_address(slot);
#pragma unroll 1
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t at = slice * kBlocks + block;
      if (of_a.bytes > 0) {
        copy_bytes(scales + block * kWideHigh * kScaleBytes, of_a.first + at * of_a.step,
                   of_a.bytes, full);
      }
      if (of_b.bytes > 0) {
        copy_bytes(scales + kScalesOfA + block * kWideAcross * kScaleBytes,
                   of_b.first + at * of_b.step, of_b.bytes, full);
      }
    }
  }
  // Blocks of a slice that the depth has.
  [[nodiscard]] __device__ int blocks_of(int slice) const {
    if constexpr (kSumsRows || kIsBlock) return kBlocks;
    return min(kBlocks, static_cast<int>(parts(call_.in - slice * kCodesDeep, kDeep)));
  }

  // The scales of one block that a tile needs, and those of the next one.
  struct Line {
    const std::uint8_t* first = nullptr;  // of block 0 of the group
    std::int64_t step = 0;                // bytes
    int bytes = 0;
  };
  [[nodiscard]] __device__ Line line_of_columns(const run::Codes& codes, const Tile& tile,
                                                std::int64_t columns, int from, int most) const {
    const std::int64_t block = std::int64_t{depths_.first_block[tile.group]} * kBlocks;
    return {bytes_at(codes, block * columns + from), columns * kScaleBytes,
            min(most, static_cast<int>(columns) - from) * kScaleBytes};
  }
  [[nodiscard]] __device__ Line line_of_weights(const Tile& tile) const {
    const std::int64_t group = tile.group * parts(call_.in, kDeep) * call_.out;
    return {bytes_at(sides_.b, group + tile.column), call_.out * kScaleBytes,
            min(kWideAcross, static_cast<int>(call_.out) - tile.column) * kScaleBytes};
  }
  [[nodiscard]] static __device__ const std::uint8_t* bytes_at(const run::Codes& codes,
                                                               std::int64_t scale) {
    return static_cast<const std::uint8_t*>(codes.scales) + scale * kScaleBytes;
  }

  // --- products ---

  // The scales of a slice that a thread reads by itself: of its two rows, with a byte for each of
  // four blocks or a float; and of the two halves of columns, if they have one each.
  struct RowScales {
    std::uint32_t rows[2];
    float halves[2];
  };
  // A thread finds them here, of block 0.
  struct RowScalePlaces {
    const std::uint8_t* row;
    const float* half;
    int second_row;   // bytes further; 0 if it is not there
    int second_half;  // scales further
  };
  [[nodiscard]] __device__ RowScalePlaces places_of(const Tile& tile) const {
    const int first = shared_.tiles.first_row[tile.group];
    const int last = shared_.tiles.first_row[tile.group + 1] - 1;
    const int row = min(first + tile.row + row_of_thread(), last);
    RowScalePlaces places{bytes_at(sides_.a, row), nullptr,
                          (min(row + 8, last) - row) * kScaleBytes, 0};
    if constexpr (kHasSquares) {
      const auto across = static_cast<int>(parts(call_.out, kHalfAcross));
      const std::int64_t group = tile.group * across * parts(call_.in, kCodesDeep);
      const int half = tile.column / kHalfAcross;
      places.half = static_cast<const float*>(sides_.b.scales) + group + half;
      places.second_half = half + 1 < across ? 1 : 0;
    }
    return places;
  }
  [[nodiscard]] __device__ RowScales scales_at(const RowScalePlaces& places, int slice) const {
    RowScales scales = {};
    if constexpr (kIsBlock) {
      const std::uint8_t* const row = places.row + slice * call_.rows.count * kScaleBytes;
      scales.rows[0] = *reinterpret_cast<const std::uint32_t*>(row);
      scales.rows[1] = *reinterpret_cast<const std::uint32_t*>(row + places.second_row);
      const float* const half = places.half + slice * parts(call_.out, kHalfAcross);
      scales.halves[0] = half[0];
      scales.halves[1] = half[places.second_half];
    } else {
      const int blocks = blocks_of(slice);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const std::int64_t at = slice * kBlocks + min(block, blocks - 1);
        const std::uint8_t* const row = places.row + at * call_.rows.count;
        scales.rows[0] |= std::uint32_t{row[0]} << (8 * block);
        scales.rows[1] |= std::uint32_t{row[places.second_row]} << (8 * block);
      }
    }
    return scales;
  }
  // The first row of a tile that a thread has sums of; the second is eight further.
  [[nodiscard]] static __device__ int row_of_thread() {
    return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x % 32 / 4);
  }

  // The scales of a thread's two rows in a block; under Mxfp8 half of them (column_scales).
  [[nodiscard]] __device__ float2 row_scales(const RowScales& own, int slot, int block) const {
    if constexpr (kSumsRows) {
      const std::uint32_t at =
          scales_address(slot) +
          static_cast<std::uint32_t>((block * kWideHigh + row_of_thread()) * kScaleBytes);
      if constexpr (kIsBlock) {
        return make_float2(__uint_as_float(load_shared(at)), __uint_as_float(load_shared(at + 32)));
      }
      return make_float2(power_of_two(load_shared_byte(at)) / 2,
                         power_of_two(load_shared_byte(at + 8)) / 2);
    } else if constexpr (kIsBlock) {
      return make_float2(__uint_as_float(own.rows[0]), __uint_as_float(own.rows[1]));
    } else {
      return make_float2(power_of_two(own.rows[0] >> (8 * block) & 0xffU) / 2,
                         power_of_two(own.rows[1] >> (8 * block) & 0xffU) / 2);
    }
  }
  // Those of two neighbouring columns. Exponents are twice what they stand for, and rows' scales
  // half, so that the least one is no subnormal number; that of a block with an infinity is
  // infinite.
  [[nodiscard]] static __device__ float2 column_scales(std::uint32_t columns, int column) {
    const std::uint32_t at = columns + static_cast<std::uint32_t>(column * kScaleBytes);
    if constexpr (kIsBlock) return load_shared_pair(at);
    constexpr std::uint32_t kOne = 0x00800000U;
    const std::uint32_t two = load_shared_half(at);
    return make_float2(__uint_as_float((two & 0xffU) * kOne + kOne),
                       __uint_as_float((two & 0xff00U) * (kOne / 256) + kOne));
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
      const int blocks = blocks_of(slice);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        if (block >= blocks) break;
        multiply_block(a, b, own, slot, block, sums);
      }
      leave(slot);
      turn_.advance();
    }
  }
  __device__ void multiply_block(std::uint64_t a, std::uint64_t b, const RowScales& own, int slot,
                                 int block, WideSums& sums) const {
    constexpr int kSteps = kDeep / 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      HalfSums of_block;
      begin_products();
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        const int step = (block * kSteps + i) * kStep;
        multiply_codes(of_block, a + static_cast<std::uint64_t>(step),
                       b + static_cast<std::uint64_t>(half * kOtherHalf + step), i == 0);
      }
      close_products();
      wait_for_products<0>();
      promote(of_block, own, slot, block, half, sums);
    }
  }
  __device__ void leave(int slot) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.slot_empty[slot]));
  }

  __device__ void promote(const HalfSums& of_block, const RowScales& own, int slot, int block,
                          int half, WideSums& sums) const {
    float2 rows = row_scales(own, slot, block);
    if constexpr (kHasSquares) {
      rows.x *= own.halves[half];
      rows.y *= own.halves[half];
    }
    const std::uint32_t columns =
        scales_address(slot) + kScalesOfA +
        static_cast<std::uint32_t>(
            (block * kWideAcross + half * kHalfAcross + static_cast<int>(threadIdx.x % 4) * 2) *
            kScaleBytes);
#pragma unroll
    for (int eight = 0; eight < kHalfAcross / 8; ++eight) {
      float(&to)[4] = sums[half * 2 + eight / 8][eight % 8];
      const float(&from)[4] = of_block[eight / 8][eight % 8];
      const float2 scale = kHasSquares ? make_float2(1, 1) : column_scales(columns, eight * 8);
      to[0] += rows.x * scale.x * from[0];
      to[1] += rows.x * scale.y * from[1];
      to[2] += rows.y * scale.x * from[2];
      to[3] += rows.y * scale.y * from[3];
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
template <run::Scaling kScaling, typename C, WideFor kFor>
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
  WideScaled<kScaling, C, kFor> product(call, sides, shared, depths, slots);
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
