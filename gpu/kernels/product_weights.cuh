// Gradients of weights on the tensor cores of sm_90a: bf16 or fp16 operands, sums in fp32, added to
// or in place of what is there.
//
// A block has three warpgroups. Two multiply, each one half of a tile of 128 x 256: 64 x 256. The
// warps of the third ask the copy engine, so that the others wait for no address:
//
//   warp 0   brings slices of both operands, some ahead of the products
//   warp 1   brings what a gradient is added to, in chunks of 64 rows of 128 bytes
//   warp 2   writes the chunks of the first half's results; warp 3 those of the second half
//
// Blocks take turns over all tiles, and all warps go through the block's tiles in one order. A tile
// over few rows is soon multiplied, so its operands' descriptors are made while slices of the tile
// before are on their way. docs/gpu.md says what was measured.
//
// Each element adds in ascending order of depth, 16 at once, batch by batch, whatever the shape and
// the number of blocks. Beyond the depth both operands are zeros, so that a neighbour's infinity is
// not multiplied by zero. Rows behind those in use are neither read nor written. Tested by
// products_test.cpp.
//
// A block divides its shared memory by the kernel's WideShape:
//
//   slot s of slots     y in pieces of 64 x deep, a row of 64 for each of depth | x likewise
//   chunk c of chunks   8 KB, of each half
//
// and besides it GroupTiles (8.5 KB), the slices of product_plain.cuh (8.5 KB) for groups whose
// weights do not lie at a multiple of 16 bytes, and barriers.

#pragma once

#include "gpu/kernels/depth_walk.cuh"
#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_tiles.cuh"
#include "gpu/kernels/product_wide.cuh"

#include <cstdint>

namespace capo::gpu {

template <typename T, typename C, WideFor kFor>
class WeightProduct {
 public:
  using Shared = WideShared<kFor>;
  static constexpr WideShape kShape = shape_for(kFor);

  /// `batches` are those of the call.
  __device__ WeightProduct(const run::GroupedProduct& call, const Batch* batches, Shared& shared,
                           const void* slots)
      : call_(call),
        batches_(batches),
        shared_(shared),
        slots_(shared_address(slots)),
        chunks_(call, shared, slot_address(kShape.slots)) {}

  /// For warp 0 of the third warpgroup, before tiles are found.
  __device__ void draft() {
    const auto in = static_cast<int>(call_.in);
    const auto out = static_cast<int>(call_.out);
    draft_map({call_.y, 0, out, 2, kShape.deep}, shared_.a_draft);
    draft_map({call_.x, 0, in, 2, kShape.deep}, shared_.b_draft);
  }
  /// For the same warp.
  __device__ void copy_operands() {
    Rotation<kShape.slots> turn;
    ring_ = &map_rings.rings[shared_.ring];
    DepthWalk<Walk, kShape.deep> walk(call_, batches_, shared_.tiles);
    StretchCopies next = copies_of(walk.next());
    while (next.slices > 0) {
      const StretchCopies copies = next;
#pragma unroll 1
      for (int slice = 0; slice < copies.slices; ++slice) {
        wait_for(shared_address(&shared_.slot_empty[turn.at()]), turn.parity() ^ 1);
        if (threadIdx.x % 32 == 0) copy_slice(copies, slice, turn.at());
        __syncwarp();
        turn.advance();
        if (slice == min(kShape.slots, copies.slices) - 1) next = copies_of(walk.next());
      }
    }
  }

  /// For warps 1 to 3, which have chunks to ask for.
  [[nodiscard]] __device__ WideChunks<C, kFor>& chunks() {
    return chunks_;
  }

  /// For the warpgroups that multiply.
  __device__ void multiply_all() {
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      if (!is_aligned(call_.w[tile.group])) {
        multiply_tile_plainly(tile);
      } else if (call_.write == run::Write::Add) {
        multiply_tile<run::Write::Add>(tile);
      } else {
        multiply_tile<run::Write::Overwrite>(tile);
      }
    }
  }

 private:
  using Walk = TileWalk<kWideHigh, kWideAcross>;
  static constexpr int kPiece = 64;  // of out or in
  static constexpr int kPieceBytes = kPiece * kShape.deep * 2;

  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kShape.slot_bytes());
  }
  [[nodiscard]] __device__ int columns_end(const Tile& tile) const {
    return min(tile.column + kWideAcross, static_cast<int>(columns_of(call_)));
  }

  // --- copies ---

  // Rows of x and y count from the first of all, so that only the end of a group is its own.
  [[nodiscard]] __device__ StretchCopies copies_of(const Stretch& stretch) {
    if (stretch.slices > 0 && (stretch.tile.group != group_ || stretch.batch != batch_)) {
      group_ = stretch.tile.group;
      batch_ = stretch.batch;
      at_ = (at_ + 1) % kRing;
      if (threadIdx.x % 32 == 0) {
        redraft_rows(shared_.a_draft, stretch.end_row);
        redraft_rows(shared_.b_draft, stretch.end_row);
        if (call_.further > 0) {
          redraft_data(shared_.a_draft, batch_ == 0 ? call_.y : batches_[batch_ - 1].y);
          redraft_data(shared_.b_draft, batch_ == 0 ? call_.x : batches_[batch_ - 1].x);
        }
      }
      put_map(shared_.a_draft, &ring_->a[at_]);
      put_map(shared_.b_draft, &ring_->b[at_]);
    }
    return {stretch.slices, stretch.first_row, stretch.tile.row, stretch.tile.column, at_};
  }
  __device__ void copy_slice(const StretchCopies& of, int slice, int slot) const {
    const std::uint32_t full = shared_address(&shared_.slot_full[slot]);
    const std::uint32_t a = slot_address(slot);
    const int row = of.first_row + slice * kShape.deep;
    arrive_expecting(full, kShape.slot_bytes());
    copy_pieces<kWideHigh>(a, &ring_->a[of.map], row, of.down, full);
    copy_pieces<kWideAcross>(a + kShape.a_bytes(), &ring_->b[of.map], row, of.across, full);
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
  __device__ void multiply_tile(const Tile& tile) {
    WideSums sums = {};
    multiply(slices_of_all<kShape.deep>(call_, batches_, shared_.tiles, tile.group), sums);
    chunks_.template put_results<kWrite>(columns_end(tile) - tile.column, sums);
  }

  __device__ void multiply(int slices, WideSums& sums) {
    const auto skipped = static_cast<std::uint32_t>(half_of_thread() * kShape.a_bytes() / kHalves);
    add_up(shared_, turn_, slices, [&](int slot) {
      const std::uint64_t a = shared_matrix(slot_address(slot) + skipped, kPieceBytes);
      const std::uint64_t b = shared_matrix(slot_address(slot) + kShape.a_bytes(), kPieceBytes);
#pragma unroll
      for (int step = 0; step < kShape.deep / 16; ++step) {
        multiply_bands<T, Contiguity::AlongCount, Contiguity::AlongCount>(
            sums, a + static_cast<std::uint64_t>(step * kStep),
            b + static_cast<std::uint64_t>(step * kStep));
      }
    });
  }
  static constexpr int kStep = 16 * 128 / 16;  // to the next 16 of depth, in units of 16 bytes

  __device__ void multiply_tile_plainly(const Tile& tile) const {
    const Product<T, C> product = product_of<T, C>(call_, shared_.tiles, tile.group);
    for (int row = tile.row; row < tile.row + kWideHigh; row += kPlainSide) {
      for (int column = tile.column; column < columns_end(tile); column += kPlainSide) {
        multiply_plainly(call_, batches_, product, {tile.group, row, column});
      }
    }
  }

  const run::GroupedProduct& call_;
  const Batch* batches_;
  Shared& shared_;
  std::uint32_t slots_;
  Rotation<kShape.slots> turn_;
  WideChunks<C, kFor> chunks_;
  MapRing* ring_ = nullptr;  ///< of a warp that asks
  int group_ = -1;           ///< the group whose descriptors it uses; -1 before the first
  int batch_ = 0;            ///< the batch whose descriptors it uses
  int at_ = 0;               ///< the place of these in the ring
};

/// A kernel for GroupedProduct, of gradients of weights: WideFor::FewRows or ManyRows.
template <typename T, typename C, WideFor kFor>
__global__ void __launch_bounds__(kWideThreads, 1)
    multiply_weights(const __grid_constant__ run::GroupedProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ WideShared<kFor> shared;
  run::GroupedProduct call = given;
  call.kind = ProductKind::WeightGradient;  // so that the compiler knows
  WeightProduct<T, C, kFor> product(call, given.batches, shared, slots);
  const bool prepares = threadIdx.x == kWideThreads - 1;
  const int warp = static_cast<int>(threadIdx.x) / 32 - kHalves * kWarpgroup / 32;
  if (prepares) shared.prepare();
  if (warp == 0) product.draft();
  find_tiles<kWideHigh, kWideAcross>(call, given.batches, shared.tiles);
  if (TileWalk<kWideHigh, kWideAcross>(call, shared.tiles).is_over()) {
    if (prepares) shared.finish();
    return;
  }
  // The registers of 3 x 168 are divided anew: 72 + 2 x 216.
  if (threadIdx.x < kHalves * kWarpgroup) {
    take_registers<216>();
    product.multiply_all();
  } else {
    give_registers<72>();
    if (warp == 0) product.copy_operands();
    if (warp == 1) product.chunks().copy_results_before();
    if (warp >= 2 && threadIdx.x % 32 == 0) product.chunks().store_results(warp - 2);
    __syncwarp();
  }
  __syncthreads();
  if (prepares) shared.finish();
#else
  __trap();
#endif
}

}  // namespace capo::gpu
