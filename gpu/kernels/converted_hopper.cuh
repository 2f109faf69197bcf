// A product of MXFP8's codes on the bf16 units of sm_90a. A code times its scale is a bf16 number
// exactly, so the result is that of the recipe, whatever a unit for codes would round. To multiply
// codes instead and promote each block of 32 was a quarter slower: docs/fp8.md has the figures of
// four designs.
//
// A block of threads is that of product_rows.cuh with a warpgroup more, which makes bf16 of B's
// codes. A's, which only one warpgroup needs, are made by it in the registers that the units read,
// so that shared memory carries the bf16 of B alone.
//
//   stage s of stages   A 128 x 64 | B 256 x 64 codes, as the engine swizzles rows of 64 bytes
//                       | scales of B, two blocks of 256
//   slot s of slots     B 256 x 64 bf16, as it would swizzle rows of 128
//   chunk c of chunks   8 KB, of each half
//
// The first and third of four codes in a word make a pair of bf16 numbers, and the second and
// fourth another (codes.cuh); so 16 neighbours along the depth are multiplied in another
// order, the same in A and B:
//
//   depth in the slot   0 1  2 3  4  5  6  7  8 9  10 11  12 13  14 15
//   depth of the code   0 2  4 6  8 10 12 14  1 3   5  7   9 11  13 15
//
// A thread asks for the scales of its rows of A one slice ahead. Tested by
// tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/codes.cuh"
#include "gpu/kernels/scaled_operands.cuh"
#include "gpu/kernels/wide_results.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kConvertedThreads = 4 * kWarpgroup;
inline constexpr int kConvertedDeep = 64;  ///< codes of a slice
inline constexpr int kStageOfA = kWideHigh * kConvertedDeep;
inline constexpr int kStageOfB = kWideAcross * kConvertedDeep;
inline constexpr int kStageBytes = kStageOfA + kStageOfB + 1024;  // boxes begin at 1024
inline constexpr int kConvertedSlot = kWideAcross * kConvertedDeep * 2;

[[nodiscard]] __host__ __device__ constexpr int stages_for(WideFor what) {
  return what == WideFor::Converted ? 4 : 3;
}
[[nodiscard]] __host__ __device__ constexpr int converted_bytes(WideFor what) {
  const WideShape shape = shape_for(what);
  return shape.slots * kConvertedSlot + stages_for(what) * kStageBytes +
         kHalves * shape.chunks * kChunkBytes;
}

template <WideFor kFor>
struct ConvertedShared : WideShared<kFor> {
  static constexpr int kStages = stages_for(kFor);
  std::uint64_t stage_full[kStages];   ///< completed by the bytes of a slice of codes
  std::uint64_t stage_empty[kStages];  ///< completed by each warp that converts some of it

  /// The barriers of WideShared as well; a slot is full when each warp that converts B has written
  /// its part.
  __device__ void prepare() {
#pragma unroll 1
    for (int stage = 0; stage < kStages; ++stage) {
      init_barrier(shared_address(&stage_full[stage]), 1);
      init_barrier(shared_address(&stage_empty[stage]), (kHalves + 1) * kWarpgroup / 32);
    }
    WideShared<kFor>::prepare(kWarpgroup / 32);
  }
};

template <typename C, WideFor kFor>
class Converted {
 public:
  using Shared = ConvertedShared<kFor>;
  static constexpr WideShape kShape = shape_for(kFor);
  static constexpr bool kSumsRows = kShape.chunks > 0;

  /// `call` is what seen() makes of the call.
  __device__ Converted(const run::GroupedProduct& call, const ScaledSides& sides, Shared& shared,
                       const DepthGroups& depths, const void* slots)
      : call_(call),
        sides_(sides),
        shared_(shared),
        depths_(depths),
        slots_(shared_address(slots)),
        chunks_(call, shared, stage_address(Shared::kStages)) {}

  /// For warp 0 of the third warpgroup.
  __device__ void copy_codes() {
    make_maps();
    Rotation<Shared::kStages> turn;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const int slices = slices_of(tile.group);
      for (int slice = 0; slice < slices; ++slice) {
        wait_for(shared_address(&shared_.stage_empty[turn.at()]), turn.parity() ^ 1);
        if (threadIdx.x % 32 == 0) copy_slice(tile, slice, turn.at());
        __syncwarp();
        turn.advance();
      }
    }
  }
  /// For warps 1 to 3 of it, which have chunks to ask for.
  [[nodiscard]] __device__ WideChunks<C, kFor>& chunks() { return chunks_; }

  /// For the fourth warpgroup, which makes B.
  __device__ void convert_all() {
    Rotation<kShape.slots> slot;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const int slices = slices_of(tile.group);
      for (int slice = 0; slice < slices; ++slice) {
        wait_for(shared_address(&shared_.stage_full[stage_.at()]), stage_.parity());
        wait_for(shared_address(&shared_.slot_empty[slot.at()]), slot.parity() ^ 1);
        convert(stage_address(stage_.at()) + kStageOfA, slot_address(slot.at()));
        publish_shared();
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.slot_full[slot.at()]));
        leave_stage();
        slot.advance();
      }
    }
  }

  /// For the warpgroups that multiply.
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
  static constexpr int kDeep = static_cast<int>(run::block_depth(run::Scaling::Mxfp8));
  static constexpr int kBlocks = kConvertedDeep / kDeep;  // of a slice
  static constexpr int kSteps = kConvertedDeep / 16;      // of a slice
  static constexpr int kRowsApart = kWarpgroup / kSteps;  // of a converting thread's pieces
  static constexpr int kPieces = kWideAcross / kRowsApart;
  // From one of them to the next, as codes and as numbers.
  static constexpr std::uint32_t kCodesApart = kRowsApart * kConvertedDeep;
  static constexpr std::uint32_t kNumbersApart = kRowsApart * 128;
  // From one half of B in a slot to the other, in units of 16 bytes.
  static constexpr int kOtherHalf = kConvertedSlot / 2 / 16;

  [[nodiscard]] __device__ MapRing& maps() const { return map_rings.rings[shared_.ring]; }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kConvertedSlot);
  }
  [[nodiscard]] __device__ std::uint32_t stage_address(int stage) const {
    return slot_address(kShape.slots) + static_cast<std::uint32_t>(stage * kStageBytes);
  }
  [[nodiscard]] __device__ int slices_of(int group) const {
    constexpr int kInBlock = static_cast<int>(run::kGroupDepth) / kConvertedDeep;
    if constexpr (kSumsRows) {
      return (depths_.first_block[group + 1] - depths_.first_block[group]) * kInBlock;
    }
    return static_cast<int>(parts(call_.in, kConvertedDeep));
  }
  // The depth of a group's slice, from the first of all.
  [[nodiscard]] __device__ int depth_of_slice(int group, int slice) const {
    const int before =
        kSumsRows ? depths_.first_block[group] * static_cast<int>(run::kGroupDepth) : 0;
    return before + slice * kConvertedDeep;
  }
  __device__ void leave_stage() {
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.stage_empty[stage_.at()]));
    stage_.advance();
  }

  // --- copies ---

  __device__ void make_maps() const {
    MapRing& ring = maps();
    const auto in = static_cast<int>(call_.in);
    const auto out = static_cast<int>(call_.out);
    if constexpr (kSumsRows) {
      const auto depth = static_cast<int>(run::depth_of(call_.rows));
      make_map({sides_.a.codes, out, depth, 1, kWideHigh, kConvertedDeep}, shared_.a_draft,
               &ring.a[0]);
      make_map({sides_.b.codes, in, depth, 1, kWideAcross, kConvertedDeep}, shared_.b_draft,
               &ring.b[0]);
    } else {
      const int groups = groups_of(call_.rows);
      make_map({sides_.a.codes, shared_.tiles.first_row[groups], in, 1, kWideHigh, kConvertedDeep},
               shared_.a_draft, &ring.a[0]);
      make_map({sides_.b.codes, groups * out, in, 1, kWideAcross, kConvertedDeep}, shared_.b_draft,
               &ring.b[0]);
    }
  }
  // The first vectors of a tile's A and B in their matrices.
  [[nodiscard]] __device__ int first_of_a(const Tile& tile) const {
    return kSumsRows ? tile.row : shared_.tiles.first_row[tile.group] + tile.row;
  }
  [[nodiscard]] __device__ int first_of_b(const Tile& tile) const {
    return kSumsRows ? tile.column : tile.group * static_cast<int>(call_.out) + tile.column;
  }
  __device__ void copy_slice(const Tile& tile, int slice, int stage) const {
    const std::uint32_t full = shared_address(&shared_.stage_full[stage]);
    const std::uint32_t a = stage_address(stage);
    const int depth = depth_of_slice(tile.group, slice);
    const auto across = static_cast<int>(kSumsRows ? call_.in : call_.out);
    const int scales = min(kWideAcross, across - tile.column);
    arrive_expecting(full, kStageOfA + kStageOfB + kBlocks * scales);
    copy_box(a, &maps().a[0], first_of_a(tile), depth, full);
    copy_box(a + kStageOfA, &maps().b[0], first_of_b(tile), depth, full);
    const std::int64_t group = kSumsRows ? 0 : tile.group * parts(call_.in, kDeep);
    const auto* const of_b = static_cast<const std::uint8_t*>(sides_.b.scales) + tile.column;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      copy_bytes(a + kStageOfA + kStageOfB + block * kWideAcross,
                 of_b + (group + block_at(tile.group, slice, block)) * across, scales, full);
    }
  }
  // A piece of 16 codes of a row lies here.
  [[nodiscard]] static __device__ std::uint32_t place_of(int row, int piece) {
    return static_cast<std::uint32_t>(row * kConvertedDeep + (piece ^ (row / 2 % 4)) * 16);
  }

  // --- scales ---

  // The block of depth of a slice's block, as scales count them. Those beyond the last have no
  // scales, and zeros for codes.
  [[nodiscard]] __device__ std::int64_t block_at(int group, int slice, int block) const {
    const auto blocks =
        static_cast<int>(parts(kSumsRows ? run::depth_of(call_.rows) : call_.in, kDeep));
    return min(depth_of_slice(group, slice) / kDeep + block, blocks - 1);
  }

  // --- B ---

  // A converting thread has one piece of each of its rows.
  [[nodiscard]] static __device__ int piece_of_thread() {
    return static_cast<int>(threadIdx.x) % kSteps;
  }
  [[nodiscard]] static __device__ int row_of_piece() {
    return static_cast<int>(threadIdx.x) % kWarpgroup / kSteps;
  }

  // The loop is short, since instructions for three kinds of warps have to come from one cache.
  static __device__ void convert(std::uint32_t stage, std::uint32_t slot) {
    constexpr int kAtOnce = 4;
    const int piece = piece_of_thread();
    const int row = row_of_piece();
    const std::uint32_t from = stage + place_of(row, piece);
    std::uint32_t scales = stage + static_cast<std::uint32_t>(
                                       kStageOfB + piece / (kSteps / kBlocks) * kWideAcross + row);
    const std::uint32_t even =
        slot + static_cast<std::uint32_t>(row * 128 + ((piece * 2) ^ (row % 8)) * 16);
    struct Piece {
      uint4 codes;
      std::uint32_t exponent;
    };
    const auto load = [&](int i) {
      return Piece{load_shared_four(from + static_cast<std::uint32_t>(i) * kCodesApart),
                   load_shared_byte(scales + static_cast<std::uint32_t>(i * kRowsApart))};
    };
#pragma unroll 1
    for (int first = 0; first < kPieces; first += kAtOnce) {
      Piece pieces[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) pieces[i] = load(first + i);
      CodeReader reader;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        put_piece([&](std::uint32_t four) { return reader.read(four, pieces[i].exponent); },
                  pieces[i].codes, even + static_cast<std::uint32_t>(first + i) * kNumbersApart);
      }
      if (__builtin_expect(reader.has_failed(), 0)) {
#pragma unroll 1
        for (int i = first; i < first + kAtOnce; ++i) {
          const Piece piece = load(i);
          put_piece(
              [&](std::uint32_t four) { return CodeReader::read_slowly(four, piece.exponent); },
              piece.codes, even + static_cast<std::uint32_t>(i) * kNumbersApart);
        }
      }
    }
  }
  template <typename Read>
  static __device__ void put_piece(Read read, const uint4& codes, std::uint32_t even) {
    const TwoPairs pairs[4] = {read(codes.x), read(codes.y), read(codes.z), read(codes.w)};
    store_shared_four(even, make_uint4(pairs[0].even, pairs[1].even, pairs[2].even, pairs[3].even));
    store_shared_four(even ^ 16U,
                      make_uint4(pairs[0].odd, pairs[1].odd, pairs[2].odd, pairs[3].odd));
  }

  // --- A ---

  // The exponents of a thread's two rows in a slice's blocks, likewise under way.
  struct RowExponents {
    std::uint8_t at[2][kBlocks];
  };
  [[nodiscard]] __device__ RowExponents row_exponents(const Tile& tile, int slice) const {
    const std::int64_t step = kSumsRows ? call_.out : call_.rows.count;
    const int last =
        kSumsRows ? static_cast<int>(call_.out) - 1 : shared_.tiles.first_row[tile.group + 1] - 1;
    const int row = first_of_a(tile) + row_of_half();
    const auto* const scales = static_cast<const std::uint8_t*>(sides_.a.scales);
    RowExponents exponents;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const std::uint8_t* const of_block = scales + block_at(tile.group, slice, block) * step;
      exponents.at[0][block] = of_block[min(row, last)];
      exponents.at[1][block] = of_block[min(row + 8, last)];
    }
    return exponents;
  }

  // A thread's part of a slice of A, for each step of 16 as the units want it.
  using RowsOfA = std::uint32_t[kSteps][4];

  // Takes the next slice of codes.
  __device__ void read_a(const RowExponents& exponents, RowsOfA& rows) {
    wait_for(shared_address(&shared_.stage_full[stage_.at()]), stage_.parity());
    const std::uint32_t from = stage_address(stage_.at()) + threadIdx.x % 4 * 4;
    std::uint32_t codes[2][kSteps];
#pragma unroll
    for (int i = 0; i < 2 * kSteps; ++i) {
      codes[i / kSteps][i % kSteps] =
          load_shared(from + place_of(row_of_half() + i / kSteps * 8, i % kSteps));
    }
    const auto read_all = [&](auto read) {
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) {
        const int row = i / kSteps;
        const int step = i % kSteps;
        const int block = step / (kSteps / kBlocks);
        const TwoPairs pairs = read(codes[row][step], exponents.at[row][block]);
        rows[step][row] = pairs.even;
        rows[step][row + 2] = pairs.odd;
      }
    };
    CodeReader reader;
    read_all(
        [&](std::uint32_t four, std::uint32_t exponent) { return reader.read(four, exponent); });
    if (__builtin_expect(reader.has_failed(), 0)) {
      read_all([](std::uint32_t four, std::uint32_t exponent) {
        return CodeReader::read_slowly(four, exponent);
      });
    }
    __syncwarp();
    leave_stage();
  }

  // --- products ---

  // Adds up all slices of a tile; this warpgroup's half of it. While a slice is multiplied the next
  // one of A is read.
  __device__ void multiply(const Tile& tile, WideSums& sums) {
    const int slices = slices_of(tile.group);
    if (slices == 0) return;
    RowsOfA even;
    RowsOfA odd;
    RowExponents next = row_exponents(tile, 0);
    const auto read_slice = [&](int slice, RowsOfA& rows) {
      if (slice >= slices) return;
      const RowExponents exponents = next;
      next = row_exponents(tile, min(slice + 1, slices - 1));
      read_a(exponents, rows);
    };
    read_slice(0, even);
    for (int slice = 0; slice < slices; slice += 2) {
      multiply_slice(even, sums);
      read_slice(slice + 1, odd);
      leave_slot();
      if (slice + 1 == slices) break;
      multiply_slice(odd, sums);
      read_slice(slice + 2, even);
      leave_slot();
    }
  }
  __device__ void multiply_slice(const RowsOfA& rows, WideSums& sums) {
    const int slot = turn_.at();
    wait_for(shared_address(&shared_.slot_full[slot]), turn_.parity());
    const std::uint64_t b = shared_matrix(slot_address(slot), 0);
    begin_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        auto& of_half = reinterpret_cast<HalfSums&>(sums[half * 2]);
        multiply_held(of_half, rows[step],
                      b + static_cast<std::uint64_t>(half * kOtherHalf + step * 2));
      }
    }
    close_products();
  }
  // When the products that read it are over.
  __device__ void leave_slot() {
    wait_for_products<0>();
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.slot_empty[turn_.at()]));
    turn_.advance();
  }

  const run::GroupedProduct& call_;
  const ScaledSides& sides_;
  Shared& shared_;
  const DepthGroups& depths_;
  std::uint32_t slots_;
  Rotation<Shared::kStages> stage_;
  Rotation<kShape.slots> turn_;
  WideChunks<C, kFor> chunks_;
};

/// A kernel for ScaledProduct of MXFP8: WideFor::Converted, or ConvertedSums for gradients of
/// weights.
template <typename C, WideFor kFor>
__global__ void __launch_bounds__(kConvertedThreads, 1)
    multiply_converted_on_hopper(const __grid_constant__ run::ScaledProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ ConvertedShared<kFor> shared;
  __shared__ DepthGroups depths;
  run::GroupedProduct call = seen(given);
  // So that the compiler knows.
  constexpr bool kSumsRows = shape_for(kFor).chunks > 0;
  call.kind = kSumsRows ? ProductKind::WeightGradient : ProductKind::Forward;
  if constexpr (!kSumsRows) call.write = run::Write::Overwrite;
  const ScaledSides sides = operands_of(given);
  Converted<C, kFor> product(call, sides, shared, depths, slots);
  const bool prepares = threadIdx.x == kConvertedThreads - 1;
  if (prepares) shared.prepare();
  if (threadIdx.x >= 32 && threadIdx.x < 64) find_depths(call.rows, depths);
  find_tiles<kWideHigh, kWideAcross>(call, nullptr, shared.tiles);
  if (TileWalk<kWideHigh, kWideAcross>(call, shared.tiles).is_over()) {
    if (prepares) shared.finish();
    return;
  }
  // The registers of 4 x 128 are divided anew: 2 x 200 + 40 + 72.
  if (threadIdx.x < kHalves * kWarpgroup) {
    take_registers<200>();
    product.multiply_all();
  } else if (threadIdx.x < 3 * kWarpgroup) {
    give_registers<40>();
    const int warp = static_cast<int>(threadIdx.x) / 32 - kHalves * kWarpgroup / 32;
    if (warp == 0) product.copy_codes();
    if constexpr (kSumsRows) {
      if (warp == 1) product.chunks().copy_results_before();
      if (warp >= 2 && threadIdx.x % 32 == 0) product.chunks().store_results(warp - 2);
    }
    __syncwarp();
  } else {
    give_registers<72>();
    product.convert_all();
  }
  __syncthreads();
  if (prepares) shared.finish();
#else
  __trap();
#endif
}

}  // namespace capo::gpu
