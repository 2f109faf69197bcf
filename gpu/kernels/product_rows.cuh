// Products whose results are rows, on the tensor cores of sm_90a: forward, and gradients of inputs,
// of bf16 or fp16, with sums in fp32.
//
// A block has three warpgroups. Two multiply, each 64 rows of a tile of 128 rows. Two warps of the
// third ask the copy engine, so that nobody else waits for an address:
//
//   warp 0   walks through the block's tiles, and puts each into a ring of jobs for those who
//            multiply; brings slices of rows, some ahead of the products
//   warp 1   walks through the same tiles, and brings slices of weights
//
// Each makes the descriptors that it needs, those of the next tile while slices of this one are on
// their way. What no size tells is drafted before the sizes are there: until the first slice is
// asked for, memory has nothing to do.
//
// A product without an epilogue is divided as row_division.h does it. One with an epilogue has
// tiles of 256 columns: of a forward, 128 of either side (product_results.cuh).
//
// Descriptors end where a group does: rows behind it arrive as zeros, and nothing of the next group
// is read for them. Each element adds in ascending order of depth, 16 at once, whatever the tile it
// lies in.
//
// A block divides its shared memory so:
//
//   slot s of kRowSlots   A 128 x 64, rows of 64 along the depth
//                         B 256 x 64 likewise where w lies along the depth, else pieces of 64
//                         columns: a row of 64 for each of depth. Narrow tiles use the first.
//
// and besides it RowTiles, the ring of jobs, the slices of product_plain.cuh for groups whose
// weights do not lie at a multiple of 16 bytes, and barriers. Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_wide.cuh"
#include "gpu/kernels/row_tiles.cuh"
#include "gpu/kernels/teams.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kRowSlots = 4;
inline constexpr int kRowBytesOfA = kRowsHigh * kRowsDeep * 2;
inline constexpr int kRowSlotBytes = (kRowsHigh + kRowsWide) * kRowsDeep * 2;
inline constexpr int kRowBytes = kRowSlots * kRowSlotBytes;

/// A tile on its way through a block.
struct RowJob {
  RowTile tile;   ///< of group -1 behind the last
  TileMap* map;   ///< of the operand that a warp brings: found anew for each slice it costs 1 %
  bool is_plain;  ///< multiplied without the engine
};

struct RowShared {
  RowTiles tiles;
  TileMap a_draft;
  TileMap b_draft;
  RowJob jobs[kRing];
  unsigned ring;
  std::uint64_t slot_full[kRowSlots];   ///< completed by the bytes of both operands
  std::uint64_t slot_empty[kRowSlots];  ///< completed by each warp that multiplied
  std::uint64_t job_made[kRing];
  std::uint64_t job_free[kRing];  ///< completed by each warp that multiplied
  static_assert(kRing > kRowSlots + 1);

  /// For one thread, before all others use anything shared. Loops stay loops, as WideShared says.
  __device__ void prepare() {
    constexpr int kWarps = kHalves * kWarpgroup / 32;
#pragma unroll 1
    for (int slot = 0; slot < kRowSlots; ++slot) {
      init_barrier(shared_address(&slot_full[slot]), 2);
      init_barrier(shared_address(&slot_empty[slot]), kWarps);
    }
#pragma unroll 1
    for (int job = 0; job < kRing; ++job) {
      init_barrier(shared_address(&job_made[job]), 1);
      init_barrier(shared_address(&job_free[job]), kWarps);
    }
    publish_barriers();
    ring = take_ring();
  }
};

template <typename T, ProductKind kKind, WideFor kFor>
class RowProduct {
 public:
  __device__ RowProduct(const run::GroupedProduct& call, RowShared& shared, const void* slots)
      : call_(call), shared_(shared), slots_(shared_address(slots)) {}

  /// For warp 0 of the third warpgroup, which brings rows, and warp 1, which brings weights; before
  /// tiles are found.
  template <bool kOfRows>
  __device__ void draft() {
    const auto in = static_cast<int>(call_.in);
    const auto out = static_cast<int>(call_.out);
    if constexpr (kOfRows) {
      draft_map({kIsForward ? call_.x : call_.y, 0, kIsForward ? in : out, 2, kRowsHigh},
                shared_.a_draft);
    } else {
      draft_map({nullptr, out, in, 2, kFor == WideFor::Epilogue ? kSide : kRowsDeep},
                shared_.b_draft);
      for (auto at = static_cast<int>(threadIdx.x % 32); at < groups_of(call_.rows); at += 32) {
        asm volatile("prefetch.global.L1 [%0];\n" ::"l"(call_.w + at));
      }
    }
  }
  /// For the same warps.
  template <bool kOfRows>
  __device__ void copy_operands() {
    Rotation<kRowSlots> turn;
    RowWalk walk(call_, shared_.tiles);
    RowJob job = job_of<kOfRows>(walk);
    while (job.tile.group >= 0) {
      if constexpr (kOfRows) put_job(job);
      RowJob next;
      const int count = job.is_plain ? 0 : slices();
      for (int slice = 0; slice < count; ++slice) {
        wait_for(shared_address(&shared_.slot_empty[turn.at()]), turn.parity() ^ 1);
        if (threadIdx.x % 32 == 0) copy_slice<kOfRows>(job, slice * kRowsDeep, turn.at());
        __syncwarp();
        turn.advance();
        if (slice == min(kRowSlots, count) - 1) next = next_job_of<kOfRows>(walk);
      }
      job = count > 0 ? next : next_job_of<kOfRows>(walk);
    }
    if constexpr (kOfRows) put_job(job);
  }

  /// For the warpgroups that multiply.
  __device__ void multiply_all() {
    for (RowJob job = next_job(); job.tile.group >= 0; job = next_job()) {
      const Product<T, T> product = product_of<T, T>(call_, shared_.tiles, job.tile.group);
      if (job.is_plain) {
        multiply_tile_plainly(product, job.tile);
        leave_job();
      } else {
        multiply_tile_of_width(product, job.tile);
      }
    }
  }

 private:
  static constexpr bool kIsForward = kKind == ProductKind::Forward;
  static constexpr Contiguity kB = kIsForward ? Contiguity::AlongDepth : Contiguity::AlongCount;
  static constexpr int kPiece = 64;  // columns, where w does not lie along the depth
  static constexpr int kPieceBytes = kPiece * kRowsDeep * 2;
  static constexpr int kSide = kRowsWide / 2;

  [[nodiscard]] __device__ MapRing& maps() const { return map_rings.rings[shared_.ring]; }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kRowSlotBytes);
  }
  [[nodiscard]] __device__ int slices() const {
    return (static_cast<int>(kIsForward ? call_.in : call_.out) + kRowsDeep - 1) / kRowsDeep;
  }

  // --- jobs ---

  // For a warp that asks: the tile that a walk is at, with its descriptors.
  template <bool kOfRows>
  [[nodiscard]] __device__ RowJob job_of(const RowWalk& walk) {
    if (walk.is_over()) return {{{.group = -1}}, nullptr, false};
    const RowTile& tile = walk.tile();
    if (!is_aligned(call_.w[tile.group])) return {tile, nullptr, true};
    constexpr bool kByWidth = !kOfRows && kIsForward && kFor == WideFor::Rows;
    if (tile.group != before_.group || (kByWidth && tile.wide != before_.wide)) {
      at_ = (at_ + 1) % kRing;
      TileMap& draft = kOfRows ? shared_.a_draft : shared_.b_draft;
      if (threadIdx.x % 32 == 0) {
        if constexpr (kOfRows) {
          redraft_rows(draft, shared_.tiles.first_row[tile.group + 1]);
        } else {
          redraft_data(draft, call_.w[tile.group]);
          if (kByWidth) redraft_box_rows(draft, tile.wide);
        }
      }
      put_map(draft, kOfRows ? &maps().a[at_] : &maps().b[at_]);
    }
    before_ = tile;
    return {tile, kOfRows ? &maps().a[at_] : &maps().b[at_], false};
  }
  template <bool kOfRows>
  [[nodiscard]] __device__ RowJob next_job_of(RowWalk& walk) {
    walk.advance();
    return job_of<kOfRows>(walk);
  }
  __device__ void put_job(const RowJob& job) {
    wait_for(shared_address(&shared_.job_free[turn_.at()]), turn_.parity() ^ 1);
    if (threadIdx.x % 32 == 0) {
      shared_.jobs[turn_.at()] = job;
      arrive(shared_address(&shared_.job_made[turn_.at()]));
    }
    __syncwarp();
    turn_.advance();
  }
  // For warps that multiply.
  [[nodiscard]] __device__ RowJob next_job() const {
    wait_for(shared_address(&shared_.job_made[turn_.at()]), turn_.parity());
    return shared_.jobs[turn_.at()];
  }
  __device__ void leave_job() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.job_free[turn_.at()]));
    turn_.advance();
  }

  // --- copies ---

  // Rows count from the first of all, so that only the end of a group is its own.
  template <bool kOfRows>
  __device__ void copy_slice(const RowJob& job, int depth, int slot) const {
    const std::uint32_t full = shared_address(&shared_.slot_full[slot]);
    const std::uint32_t a = slot_address(slot);
    const std::uint32_t b = a + kRowBytesOfA;
    arrive_expecting(full, kOfRows ? kRowBytesOfA : job.tile.wide * kRowsDeep * 2);
    if constexpr (kOfRows) {
      copy_box(a, job.map, shared_.tiles.first_row[job.tile.group] + job.tile.row, depth, full);
    } else if constexpr (kFor == WideFor::Epilogue) {
      const Sides sides = sides_of(call_, job.tile, kSide);
      copy_box(b, job.map, sides.left, depth, full);
      copy_box(b + kSide * kRowsDeep * 2, job.map, sides.right, depth, full);
    } else if constexpr (kIsForward) {
      copy_box(b, job.map, job.tile.column, depth, full);
    } else {
#pragma unroll
      for (int piece = 0; piece < kRowsWide / kPiece; ++piece) {
        if (piece * kPiece >= job.tile.wide) break;
        copy_box(b + static_cast<std::uint32_t>(piece * kPieceBytes), job.map, depth,
                 job.tile.column + piece * kPiece, full);
      }
    }
  }

  // --- products ---

  __device__ void multiply_tile_of_width(const Product<T, T>& product, const RowTile& tile) {
    if constexpr (kFor == WideFor::Rows) {
      if (tile.wide == 192) return multiply_tile<3>(product, tile);
      if (tile.wide == 128) return multiply_tile<2>(product, tile);
      if (tile.wide == 64) return multiply_tile<1>(product, tile);
    }
    multiply_tile<4>(product, tile);
  }
  // Multiplies this warpgroup's part of a tile of kBands times 64 columns.
  template <int kBands>
  __device__ void multiply_tile(const Product<T, T>& product, const RowTile& tile) {
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 * 16;
    float sums[kBands][8][4] = {};
    if constexpr (kFor == WideFor::Gates) {
      const GroupGates<T> of = gates_of<T>(call_, shared_.tiles, tile.group);
      GateRows<T> gates(product, of, row, tile.column);
      multiply<kBands>(sums);
      leave_job();
      gates.finish(sums);
      return;
    }
    multiply<kBands>(sums);
    leave_job();
    if constexpr (kFor == WideFor::Epilogue) {
      const GroupEpilogue<T> epilogue = epilogue_of<T>(call_, shared_.tiles, tile.group);
      const Sides sides = sides_of(call_, tile, kSide);
#pragma unroll
      for (int i = 0; i < kSide / kWarpSide; ++i) {
        const int across = i * kWarpSide;
        finish_band(product, epilogue, row,
                    {sides.left + across, sides.right + across, sides.left_end}, sums[i],
                    sums[i + kSide / kWarpSide]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kBands; ++i) {
        write_band<run::Write::Overwrite>(product, row, tile.column + i * kWarpSide, sums[i]);
      }
    }
  }

  template <int kBands>
  __device__ void multiply(float (&sums)[kBands][8][4]) {
    const auto skipped = static_cast<std::uint32_t>(half_of_thread() * kRowBytesOfA / kHalves);
    add_up(shared_, slot_turn_, slices(), [&](int slot) {
      const std::uint64_t a = shared_matrix(slot_address(slot) + skipped, kPieceBytes);
      const std::uint64_t b = shared_matrix(slot_address(slot) + kRowBytesOfA, kPieceBytes);
#pragma unroll
      for (int step = 0; step < kRowsDeep / 16; ++step) {
        multiply_bands<T, Contiguity::AlongDepth, kB>(
            sums, a + static_cast<std::uint64_t>(step * kStep<Contiguity::AlongDepth>),
            b + static_cast<std::uint64_t>(step * kStep<kB>));
      }
    });
  }
  // From one 16 of depth to the next, in units of 16 bytes.
  template <Contiguity kOperand>
  static constexpr int kStep = kOperand == Contiguity::AlongDepth ? 2 : 16 * 128 / 16;

  __device__ void multiply_tile_plainly(const Product<T, T>& product, const RowTile& tile) const {
    if constexpr (kFor == WideFor::Epilogue) {
      const Sides sides = sides_of(call_, tile, kSide);
      multiply_plainly_across(product, tile, sides.left, kSide, sides.left_end);
      multiply_plainly_across(product, tile, sides.right, kSide, product.columns());
      finish_tile(product, tile, sides);
    } else {
      multiply_plainly_across(product, tile, tile.column, tile.wide, product.columns());
      if constexpr (kFor == WideFor::Gates) finish_gates_of_tile(product, tile);
    }
  }
  __device__ void multiply_plainly_across(const Product<T, T>& product, const RowTile& tile,
                                          int first, int columns, int end) const {
    for (int row = tile.row; row < tile.row + kRowsHigh; row += kPlainSide) {
      for (int column = first; column < first + columns; column += kPlainSide) {
        multiply_plainly(call_, nullptr, product, {tile.group, row, column}, end);
      }
    }
  }
  // Goes on with what multiply_plainly() left in memory.
  __device__ void finish_tile(const Product<T, T>& product, const RowTile& tile,
                              const Sides& sides) const {
    constexpr int kEights = kSide / 8;
    const GroupEpilogue<T> epilogue = epilogue_of<T>(call_, shared_.tiles, tile.group);
    plain::wait_for_all();
    for (auto at = static_cast<int>(threadIdx.x); at < kRowsHigh * kEights; at += kPlainThreads) {
      const int row = tile.row + at / kEights;
      const int across = at % kEights * 8;
      if (row >= product.rows()) continue;
      const Sides here{sides.left + across, sides.right + across, sides.left_end};
      const T* y = product.c + std::int64_t{row} * product.columns();
      const auto eight_at = [&](int column, bool is_there) {
        return is_there ? *reinterpret_cast<const uint4*>(y + column) : make_uint4(0, 0, 0, 0);
      };
      finish_eights(product, epilogue, row, here, biases_at(product, epilogue, here),
                    eight_at(here.left, here.left < here.left_end),
                    eight_at(here.right, here.right < product.columns()));
    }
  }

  // A warp has a row at a time, whose sum it leaves where its own columns were.
  __device__ void finish_gates_of_tile(const Product<T, T>& product, const RowTile& tile) const {
    const GroupGates<T> of = gates_of<T>(call_, shared_.tiles, tile.group);
    const int column = tile.column + static_cast<int>(threadIdx.x) % 32 * 8;
    plain::wait_for_all();
    const int end = min(tile.row + kRowsHigh, product.rows());
    for (int row = tile.row + static_cast<int>(threadIdx.x) / 32; row < end;
         row += kPlainThreads / 32) {
      const T* x = product.c + std::int64_t{row} * product.columns() + column;
      const bool is_there = column < product.columns();
      const uint4 incoming = is_there ? *reinterpret_cast<const uint4*>(x) : make_uint4(0, 0, 0, 0);
      const EightGates gates = gates_at(product, of, row, column);
      const float probability = factor_of(of.probabilities, row);
      const float sum =
          Warp().sum(finish_gates(product, of, row, column, probability, gates, incoming));
      if (of.leaves_sums && threadIdx.x % 32 == 0) leave_sum(product, row, tile.column, sum);
    }
  }

  const run::GroupedProduct& call_;
  RowShared& shared_;
  std::uint32_t slots_;
  Rotation<kRing> turn_;  ///< of jobs
  Rotation<kRowSlots> slot_turn_;
  RowTile before_ = {{.group = -1}};  ///< the tile that this warp has made descriptors for
  int at_ = 0;                        ///< the place of these in the ring
};

/// A kernel for GroupedProduct of one kind: WideFor::Rows, or Epilogue for a forward that goes on
/// with its result, or Gates for a gradient that goes on to SwiGLU's.
template <typename T, ProductKind kKind, WideFor kFor>
__global__ void __launch_bounds__(kWideThreads, 1)
    multiply_rows(const __grid_constant__ run::GroupedProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ RowShared shared;
  run::GroupedProduct call = given;
  call.kind = kKind;  // so that the compiler knows
  call.write = run::Write::Overwrite;
  call.further = 0;
  RowProduct<T, kKind, kFor> product(call, shared, slots);
  const bool prepares = threadIdx.x == kWideThreads - 1;
  const int warp = static_cast<int>(threadIdx.x) / 32 - kHalves * kWarpgroup / 32;
  if (prepares) shared.prepare();
  if (warp == 0) product.template draft<true>();
  if (warp == 1) product.template draft<false>();
  find_row_tiles<kFor == WideFor::Rows>(call, shared.tiles);
  // The registers of 3 x 168 are divided anew: 56 + 2 x 224.
  if (threadIdx.x < kHalves * kWarpgroup) {
    take_registers<224>();
    product.multiply_all();
  } else {
    give_registers<56>();
    if (warp == 0) product.template copy_operands<true>();
    if (warp == 1) product.template copy_operands<false>();
    __syncwarp();
  }
  __syncthreads();
  if (prepares) give_ring(shared.ring);
#else
  __trap();
#endif
}

}  // namespace capo::gpu
