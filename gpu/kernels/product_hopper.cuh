// A product on the tensor cores of sm_90a: bf16 or fp16 operands, sums in fp32.
//
// A block has three warpgroups. Two multiply, each one half of a tile of 128 x 256: 64 x 256. The
// warps of the third ask the copy engine, so that the others wait for no address:
//
//   warp 0   brings slices of both operands, some ahead of the products
//   warp 1   brings what a gradient is added to, in chunks of 64 rows of 128 bytes
//   warp 2   writes the chunks of the first half's results; warp 3 those of the second half
//
// Blocks take turns over all tiles, and all warps go through the block's tiles in one order. Only
// gradients of weights go through chunks; results of rows are written by the threads that have
// them. docs/gpu.md says what was measured.
//
// Each element adds in ascending order of depth, 16 at once, batch by batch, whatever the shape and
// the number of blocks. Beyond the depth both operands are zeros, so that a neighbour's infinity is
// not multiplied by zero. Rows behind those in use are neither read nor written. Tested by
// products_test.cpp.
//
// A block divides its shared memory by the kernel's WideShape:
//
//   slot s of slots     A 128 x deep | B 256 x deep, as the copy engine swizzles them:
//       contiguous depth   rows of 64 elements of depth, one for each of count
//       contiguous count   pieces of 64 of count: a row of 64 for each of depth
//   chunk c of chunks   8 KB, of each half
//
// and besides it GroupTiles (8.5 KB), the slices of product_plain.cuh (8.5 KB) for groups whose
// weights do not lie at a multiple of 16 bytes, and barriers.

#pragma once

#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_tiles.cuh"
#include "gpu/kernels/product_wide.cuh"
#include "gpu/kernels/teams.cuh"

#include <cstdint>

namespace capo::gpu {

template <typename T, typename C, ProductKind kKind, WideFor kFor>
class WideProduct {
 public:
  using Shared = WideShared<kFor>;
  static constexpr WideShape kShape = shape_for(kFor);

  /// `batches` are those of the call.
  __device__ WideProduct(const run::GroupedProduct& call, const Batch* batches, Shared& shared,
                         const void* slots)
      : call_(call),
        batches_(batches),
        shared_(shared),
        slots_(shared_address(slots)),
        chunks_(call, shared, slot_address(kShape.slots)) {}

  /// For warp 0 of the third warpgroup.
  __device__ void copy_operands() {
    Rotation<kShape.slots> turn;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      for (int batch = 0; batch <= call_.further; ++batch) {
        const int slices = slices_of(tile.group, batch);
        if (slices > 0 && (tile.group != group_ || batch != batch_)) {
          turn_operands_to(tile.group, batch);
        }
        for (int slice = 0; slice < slices; ++slice) {
          wait_for(shared_address(&shared_.slot_empty[turn.at()]), turn.parity() ^ 1);
          if (threadIdx.x % 32 == 0) copy_slice(tile, slice, turn.at());
          __syncwarp();
          turn.advance();
        }
      }
    }
  }

  /// For warps 1 to 3, which have chunks to ask for.
  [[nodiscard]] __device__ WideChunks<C, kFor>& chunks() { return chunks_; }

  /// For the warpgroups that multiply.
  __device__ void multiply_all() {
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const Product<T, C> product = product_of<T, C>(call_, shared_.tiles, tile.group);
      if (!lies_well(product)) {
        multiply_tile_plainly(product, tile);
      } else if (call_.write == run::Write::Add) {
        multiply_tile<run::Write::Add>(product, tile);
      } else {
        multiply_tile<run::Write::Overwrite>(product, tile);
      }
    }
  }

 private:
  using Walk = TileWalk<kWideHigh, kWideAcross>;
  static constexpr bool kIsWeight = kKind == ProductKind::WeightGradient;
  static constexpr Contiguity kA = kIsWeight ? Contiguity::AlongCount : Contiguity::AlongDepth;
  static constexpr Contiguity kB =
      kKind == ProductKind::Forward ? Contiguity::AlongDepth : Contiguity::AlongCount;
  static constexpr int kPiece = 64;  // of count, where count is contiguous
  static constexpr int kPieceBytes = kPiece * kShape.deep * 2;
  static constexpr int kSide = kWideAcross / 2;
  static constexpr int kBox = kFor == WideFor::Epilogue ? kSide : kWideAcross;  // rows of w
  static_assert(kShape.deep == 64 || kIsWeight, "rows along the depth are boxes of 128 bytes");

  [[nodiscard]] __device__ MapRing& maps() const { return map_rings.rings[shared_.ring]; }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kShape.slot_bytes());
  }
  static __device__ bool lies_well(const Product<T, C>& product) {
    return is_aligned(product.b.data) && is_aligned(product.c);
  }
  // 0 of a group that is multiplied plainly. Batch 0 is the call's first.
  [[nodiscard]] __device__ int slices_of(int group, int batch) const {
    const Product<T, C> product = product_of<T, C>(call_, shared_.tiles, group);
    if (!lies_well(product)) return 0;
    const int depth = batch == 0 ? product.depth() : size_of(batches_[batch - 1], group);
    return static_cast<int>(parts(depth, kShape.deep));
  }
  [[nodiscard]] __device__ int slices_of_all(int group) const {
    int slices = 0;
    for (int batch = 0; batch <= call_.further; ++batch) slices += slices_of(group, batch);
    return slices;
  }
  [[nodiscard]] __device__ int columns_end(const Tile& tile) const {
    return min(tile.column + kWideAcross, static_cast<int>(columns_of(call_)));
  }

  // --- copies ---

  // Rows of x and y count from the first of all, so that only the end of a group is its own. Where
  // rows are not the depth, the descriptor of A serves all groups, and rows of the next group that
  // come with a tile are multiplied and not written.
  __device__ void turn_operands_to(int group, int batch) {
    const bool is_first = group_ < 0;
    group_ = group;
    batch_ = batch;
    at_ = (at_ + 1) % kRing;
    const auto in = static_cast<int>(call_.in);
    const auto out = static_cast<int>(call_.out);
    MapRing& ring = maps();
    first_row_ = shared_.tiles.first_row[group];
    if constexpr (kIsWeight) {
      const void* x = call_.x;
      const void* y = call_.y;
      int end = shared_.tiles.first_row[group + 1];
      if (batch > 0) {
        const Batch& further = batches_[batch - 1];
        const BatchRows rows = rows_of(further, group);
        x = further.x;
        y = further.y;
        first_row_ = rows.first;
        end = rows.first + rows.count;
      }
      make_map({y, end, out, 2, kShape.deep}, shared_.a_draft, &ring.a[at_]);
      make_map({x, end, in, 2, kShape.deep}, shared_.b_draft, &ring.b[at_]);
    } else {
      constexpr bool kIsForward = kKind == ProductKind::Forward;
      if (is_first) {
        const int rows = shared_.tiles.first_row[groups_of(call_.rows)];
        make_map({kIsForward ? call_.x : call_.y, rows, kIsForward ? in : out, 2, kWideHigh},
                 shared_.a_draft, &ring.a[0]);
      }
      make_map({call_.w[group], out, in, 2, kIsForward ? kBox : kShape.deep}, shared_.b_draft,
               &ring.b[at_]);
    }
  }
  __device__ void copy_slice(const Tile& tile, int slice, int slot) const {
    const std::uint32_t full = shared_address(&shared_.slot_full[slot]);
    const std::uint32_t a = slot_address(slot);
    const std::uint32_t b = a + kShape.a_bytes();
    const int first = first_row_;
    const int depth = slice * kShape.deep;
    const MapRing& ring = maps();
    arrive_expecting(full, kShape.slot_bytes());
    if constexpr (kIsWeight) {
      copy_pieces<kWideHigh>(a, &ring.a[at_], first + depth, tile.row, full);
    } else {
      copy_box(a, &ring.a[0], first + tile.row, depth, full);
    }
    if constexpr (kFor == WideFor::Epilogue) {
      const Sides sides = sides_of(call_, tile, kSide);
      copy_box(b, &ring.b[at_], sides.left, depth, full);
      copy_box(b + kShape.slot_bytes() / 3, &ring.b[at_], sides.right, depth, full);
    } else if constexpr (kKind == ProductKind::Forward) {
      copy_box(b, &ring.b[at_], tile.column, depth, full);
    } else {
      copy_pieces<kWideAcross>(b, &ring.b[at_], kIsWeight ? first + depth : depth, tile.column,
                               full);
    }
  }
  template <int kCount>
  static __device__ void copy_pieces(std::uint32_t to, const TileMap* map, int row, int column,
                                     std::uint32_t full) {
#pragma unroll
    for (int piece = 0; piece < kCount / kPiece; ++piece) {
      copy_box(to + static_cast<std::uint32_t>(piece * kPieceBytes), map, row,
               column + piece * kPiece, full);
    }
  }

  // --- products ---

  // Multiplies this warpgroup's half of a tile.
  template <run::Write kWrite>
  __device__ void multiply_tile(const Product<T, C>& product, const Tile& tile) {
    WideSums sums = {};
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 * 16;
    if constexpr (kFor == WideFor::Gates) {
      const GroupGates<T> of = gates_of<T>(call_, shared_.tiles, tile.group);
      GateRows<T> gates(product, of, row, tile.column);
      multiply(slices_of_all(tile.group), sums);
      gates.finish(sums);
      return;
    }
    multiply(slices_of_all(tile.group), sums);
    if constexpr (kShape.chunks > 0) {
      chunks_.template put_results<kWrite>(columns_end(tile) - tile.column, sums);
      return;
    }
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
      for (int i = 0; i < kWideAcross / kWarpSide; ++i) {
        write_band<kWrite>(product, row, tile.column + i * kWarpSide, sums[i]);
      }
    }
  }

  // Adds up all slices; a slot is left when the products that read it are over, one slice later.
  __device__ void multiply(int slices, WideSums& sums) {
    const auto skipped = static_cast<std::uint32_t>(half_of_thread() * kShape.a_bytes() / kHalves);
    int before = 0;
    for (int slice = 0; slice < slices; ++slice) {
      const int slot = turn_.at();
      wait_for(shared_address(&shared_.slot_full[slot]), turn_.parity());
      const std::uint64_t a = shared_matrix(slot_address(slot) + skipped, kPieceBytes);
      const std::uint64_t b = shared_matrix(slot_address(slot) + kShape.a_bytes(), kPieceBytes);
      begin_products();
#pragma unroll
      for (int step = 0; step < kShape.deep / 16; ++step) {
        multiply_wide<T, kA, kB>(sums, a + static_cast<std::uint64_t>(step * kStep<kA>),
                                 b + static_cast<std::uint64_t>(step * kStep<kB>));
      }
      close_products();
      if (slice > 0) {
        wait_for_products<1>();
        leave(before);
      }
      before = slot;
      turn_.advance();
    }
    wait_for_products<0>();
    if (slices > 0) leave(before);
  }
  // From one 16 of depth to the next, in units of 16 bytes.
  template <Contiguity kOperand>
  static constexpr int kStep = kOperand == Contiguity::AlongDepth ? 2 : 16 * 128 / 16;

  __device__ void leave(int slot) const {
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared_.slot_empty[slot]));
  }

  __device__ void multiply_tile_plainly(const Product<T, C>& product, const Tile& tile) const {
    if constexpr (kFor == WideFor::Epilogue) {
      const Sides sides = sides_of(call_, tile, kSide);
      multiply_plainly_across(product, tile, sides.left, kSide, sides.left_end);
      multiply_plainly_across(product, tile, sides.right, kSide, product.columns());
      finish_tile(product, tile, sides);
    } else {
      multiply_plainly_across(product, tile, tile.column, kWideAcross, product.columns());
      if constexpr (kFor == WideFor::Gates) finish_gates_of_tile(product, tile);
    }
  }
  __device__ void multiply_plainly_across(const Product<T, C>& product, const Tile& tile, int first,
                                          int columns, int end) const {
    for (int row = tile.row; row < tile.row + kWideHigh; row += kPlainSide) {
      for (int column = first; column < first + columns; column += kPlainSide) {
        multiply_plainly(call_, batches_, product, {tile.group, row, column}, end);
      }
    }
  }
  // Goes on with what multiply_plainly() left in memory.
  __device__ void finish_tile(const Product<T, C>& product, const Tile& tile,
                              const Sides& sides) const {
    constexpr int kEights = kSide / 8;
    const GroupEpilogue<T> epilogue = epilogue_of<T>(call_, shared_.tiles, tile.group);
    plain::wait_for_all();
    for (auto at = static_cast<int>(threadIdx.x); at < kWideHigh * kEights; at += kPlainThreads) {
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
  __device__ void finish_gates_of_tile(const Product<T, C>& product, const Tile& tile) const {
    const GroupGates<T> of = gates_of<T>(call_, shared_.tiles, tile.group);
    const int column = tile.column + static_cast<int>(threadIdx.x) % 32 * 8;
    plain::wait_for_all();
    const int end = min(tile.row + kWideHigh, product.rows());
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
  const Batch* batches_;
  Shared& shared_;
  std::uint32_t slots_;
  Rotation<kShape.slots> turn_;
  WideChunks<C, kFor> chunks_;
  int group_ = -1;     ///< the group whose descriptors this warp uses; -1 before the first
  int batch_ = 0;      ///< the batch whose descriptors it uses
  int first_row_ = 0;  ///< the first row of that group in that batch
  int at_ = 0;         ///< the place of these descriptors in the ring
};

/// A kernel for GroupedProduct of one kind.
template <typename T, typename C, ProductKind kKind, WideFor kFor>
__global__ void __launch_bounds__(kWideThreads, 1)
    multiply_on_hopper(const __grid_constant__ run::GroupedProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ WideShared<kFor> shared;
  run::GroupedProduct call = given;
  call.kind = kKind;  // so that the compiler knows
  if constexpr (kKind != ProductKind::WeightGradient) {
    call.write = run::Write::Overwrite;
    call.further = 0;
  }
  WideProduct<T, C, kKind, kFor> product(call, given.batches, shared, slots);
  const bool prepares = threadIdx.x == kWideThreads - 1;
  if (prepares) shared.prepare();
  find_tiles<kWideHigh, kWideAcross>(call, given.batches, shared.tiles);
  if (TileWalk<kWideHigh, kWideAcross>(call, shared.tiles).is_over()) {
    if (prepares) shared.finish();
    return;
  }
  // The registers of 3 x 168 are divided anew: 56 + 2 x 224.
  if (threadIdx.x < kHalves * kWarpgroup) {
    take_registers<224>();
    product.multiply_all();
  } else {
    give_registers<56>();
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
