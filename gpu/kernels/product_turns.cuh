// Gradients of weights into fp32 on the tensor cores of sm_90a: bf16 or fp16 operands.
//
// Results are as many bytes as operands are, or more. In product_weights.cuh both warpgroups put
// theirs at the same time, and nothing is multiplied meanwhile. Here they take turns: one
// multiplies a whole tile while the other adds and writes the tile before. Blocks are in clusters
// of two, one tile above the other: both need the same x, of which each brings half of every slice
// for both. A third warpgroup asks the copy engine:
//
//   warp 0   brings slices of y, some ahead of the products
//   warp 1   brings slices of x likewise: one warp asks too slowly for both
//   warp 2   brings what the gradient is added to, in chunks of 64 rows of 32 columns
//   warp 3   writes chunks of results
//
// All warps go through the tiles of their cluster in one order, and slots and chunks pass from one
// warpgroup to the other with the turn. A parity does not tell a round of slots from the round
// after the next, so a warpgroup waits at no slot or chunk before the other has waited at all in
// front of it: named barriers hand on the turn at products and that at chunks. A slot is filled
// only when both blocks have left theirs, since each brings x for both. Each element adds in
// ascending order of its index, 16 at once, batch by batch, as product_weights.cuh's do.
//
// Groups whose gradient does not lie at a multiple of 16 bytes are multiplied plainly by both
// warpgroups when all others are done. A block divides its shared memory so:
//
//   slot s of kTurnSlots    y in pieces of 64 x 64 | x likewise, as the copy engine swizzles them
//   chunk c of kTurnChunks  8 KB
//
// and besides it GroupTiles, product_plain.cuh's slices and barriers. Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/depth_walk.cuh"
#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_tiles.cuh"
#include "gpu/kernels/product_wide.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kTurnHigh = 128;
inline constexpr int kTurnAcross = 192;
inline constexpr int kTurnDeep = 64;
inline constexpr int kTurnSlots = 4;
inline constexpr int kTurnChunks = 6;
inline constexpr int kTurnBlocks = 2;  ///< of a cluster
inline constexpr int kTurnPiece = 64;  ///< columns of y or x that one copy brings
inline constexpr int kTurnPieceBytes = kTurnPiece * kTurnDeep * 2;
inline constexpr int kTurnSlotBytes = (kTurnHigh + kTurnAcross) * kTurnDeep * 2;
inline constexpr int kTurnBytes = kTurnSlots * kTurnSlotBytes + kTurnChunks * kChunkBytes;
inline constexpr int kTurnColumns = 128 / static_cast<int>(sizeof(float));  ///< of a chunk
inline constexpr int kTurnHalves = kTurnHigh / kHalf;

struct TurnShared {
  GroupTiles tiles;
  TileMap a_draft;
  TileMap b_draft;
  TileMap c_draft;
  unsigned ring;
  std::uint64_t slot_full[kTurnSlots];    ///< completed by warps 0 and 1 and the bytes they ask for
  std::uint64_t slot_empty[kTurnSlots];   ///< completed by the warps of both blocks that multiplied
  std::uint64_t chunk_full[kTurnChunks];  ///< completed by what results are added to
  std::uint64_t chunk_ready[kTurnChunks];  ///< completed by all threads that put results
  std::uint64_t chunk_empty[kTurnChunks];  ///< completed when the results were read
  static_assert(kRing > kTurnSlots && kRing > kTurnChunks);
  static_assert(kTurnChunks > 1, "a chunk is left when the next one is on its way");

  /// For one thread, before all others use anything shared. Loops stay loops, as WideShared says.
  __device__ void prepare() {
#pragma unroll 1
    for (int slot = 0; slot < kTurnSlots; ++slot) {
      init_barrier(shared_address(&slot_full[slot]), 2);
      init_barrier(shared_address(&slot_empty[slot]), kTurnBlocks * kWarpgroup / 32);
    }
#pragma unroll 1
    for (int chunk = 0; chunk < kTurnChunks; ++chunk) {
      init_barrier(shared_address(&chunk_full[chunk]), 1);
      init_barrier(shared_address(&chunk_ready[chunk]), kWarpgroup);
      init_barrier(shared_address(&chunk_empty[chunk]), 1);
    }
    publish_barriers();
    ring = take_ring();
  }
};

/// The tiles of a block that go through its chunks.
class TurnWalk {
 public:
  using Tiles = TileWalk<kTurnBlocks * kTurnHigh, kTurnAcross, 8, kTurnBlocks>;

  __device__ TurnWalk(const run::GroupedProduct& call, const GroupTiles& tiles)
      : call_(call), walk_(call, tiles) {
    find();
  }
  [[nodiscard]] __device__ bool is_over() const { return walk_.is_over(); }
  __device__ void advance() {
    walk_.advance();
    find();
  }
  [[nodiscard]] __device__ const Tile& tile() const { return tile_; }
  /// Chunks of this tile: those of both halves, column by column.
  [[nodiscard]] __device__ int chunks() const {
    const int columns = min(kTurnAcross, static_cast<int>(call_.in) - tile_.column);
    return static_cast<int>(parts(columns, kTurnColumns)) * kTurnHalves;
  }

 private:
  __device__ void find() {
    for (; !walk_.is_over(); walk_.advance()) {
      tile_ = walk_.tile();
      if (is_aligned(call_.w[tile_.group])) break;
    }
    tile_.row += rank_in_cluster() * kTurnHigh;
  }

  const run::GroupedProduct& call_;
  Tiles walk_;
  Tile tile_ = {};
};

/// A turn at something that both warpgroups use, each for a tile.
enum class TurnAt : std::uint8_t { Products = 2, Chunks = 4 };

__device__ inline void wait_for_turn(TurnAt what, int warpgroup) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(static_cast<int>(what) + warpgroup), "n"(2 * kWarpgroup)
               : "memory");
}
__device__ inline void give_turn(TurnAt what, int warpgroup) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(static_cast<int>(what) + warpgroup), "n"(2 * kWarpgroup)
               : "memory");
}

enum class Operands : std::uint8_t { Y, X };

template <typename T>
class TurnProduct {
 public:
  /// `batches` are those of the call.
  __device__ TurnProduct(const run::GroupedProduct& call, const Batch* batches, TurnShared& shared,
                         const void* slots)
      : call_(call), batches_(batches), shared_(shared), slots_(shared_address(slots)) {}

  /// For warps 0 and 1 of the third warpgroup, before tiles are found.
  template <Operands kOf>
  __device__ void draft() {
    if constexpr (kOf == Operands::Y) {
      draft_map({call_.y, 0, static_cast<int>(call_.out), 2, kTurnDeep}, shared_.a_draft);
    } else {
      draft_map({call_.x, 0, static_cast<int>(call_.in), 2, kTurnDeep / kTurnBlocks},
                shared_.b_draft);
    }
  }
  /// For the same warps.
  template <Operands kOf>
  __device__ void copy_operands() {
    Rotation<kTurnSlots> turn;
    DepthWalk<TurnWalk, kTurnDeep> walk(call_, batches_, shared_.tiles);
    for (StretchCopies of = copies_of<kOf>(walk.next()); of.slices > 0;
         of = copies_of<kOf>(walk.next())) {
#pragma unroll 1
      for (int slice = 0; slice < of.slices; ++slice) {
        wait_for(shared_address(&shared_.slot_empty[turn.at()]), turn.parity() ^ 1);
        if (threadIdx.x % 32 == 0) copy_slice<kOf>(of, slice, turn.at());
        __syncwarp();
        turn.advance();
      }
    }
  }

  /// For warp 2. Where nothing is added to, it only hands on chunks that are empty.
  __device__ void copy_results_before() {
    Rotation<kTurnChunks> turn;
    for (TurnWalk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      if (tile.group != group_) turn_results_to(tile.group);
      const int chunks = walk.chunks();
#pragma unroll 1
      for (int chunk = 0; chunk < chunks; ++chunk) {
        wait_for(shared_address(&shared_.chunk_empty[turn.at()]), turn.parity() ^ 1);
        const std::uint32_t full = shared_address(&shared_.chunk_full[turn.at()]);
        if (threadIdx.x % 32 == 0 && call_.write == run::Write::Overwrite) arrive(full);
        if (threadIdx.x % 32 == 0 && call_.write == run::Write::Add) {
          arrive_expecting(full, kChunkBytes);
          copy_box_once(chunk_address(turn.at()), &maps().c[at_], row_of(tile, chunk),
                        column_of(tile, chunk), full);
        }
        __syncwarp();
        turn.advance();
      }
    }
  }

  /// For one thread of warp 3, which counts descriptors as warp 2 does that made them.
  __device__ void store_results() {
    Rotation<kTurnChunks> turn;
    for (TurnWalk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const bool is_new = tile.group != group_;
      if (is_new) at_ = (at_ + 1) % kRing;
      group_ = tile.group;
      const int chunks = walk.chunks();
      int before = -1;
#pragma unroll 1
      for (int chunk = 0; chunk < chunks; ++chunk) {
        wait_for(shared_address(&shared_.chunk_ready[turn.at()]), turn.parity());
        if (is_new && chunk == 0) acquire_map(&maps().c[at_]);
        store_box_once(&maps().c[at_], row_of(tile, chunk), column_of(tile, chunk),
                       chunk_address(turn.at()));
        if (before >= 0) {
          wait_for_reads<1>();
          arrive(shared_address(&shared_.chunk_empty[before]));
        }
        before = turn.at();
        turn.advance();
      }
      wait_for_reads<0>();
      arrive(shared_address(&shared_.chunk_empty[before]));
    }
    wait_for_stores();
  }

  /// For the warpgroups that multiply.
  __device__ void multiply_all() {
    if (call_.write == run::Write::Add) {
      multiply_tiles<run::Write::Add>();
    } else {
      multiply_tiles<run::Write::Overwrite>();
    }
    multiply_others();
  }

 private:
  using TurnSums = float[kTurnAcross / 64][8][4];  ///< of 64 rows

  [[nodiscard]] __device__ MapRing& maps() const {
    return map_rings.rings[shared_.ring];
  }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kTurnSlotBytes);
  }
  [[nodiscard]] __device__ std::uint32_t chunk_address(int chunk) const {
    return slot_address(kTurnSlots) + static_cast<std::uint32_t>(chunk * kChunkBytes);
  }
  static __device__ int row_of(const Tile& tile, int chunk) {
    return tile.row + chunk % kTurnHalves * kHalf;
  }
  static __device__ int column_of(const Tile& tile, int chunk) {
    return tile.column + chunk / kTurnHalves * kTurnColumns;
  }
  // --- copies ---

  // Rows of x and y count from the first of all, so that only the end of a group is its own.
  template <Operands kOf>
  [[nodiscard]] __device__ StretchCopies copies_of(const Stretch& stretch) {
    constexpr bool kIsX = kOf == Operands::X;
    if (stretch.slices > 0 && (stretch.tile.group != group_ || stretch.batch != batch_)) {
      group_ = stretch.tile.group;
      batch_ = stretch.batch;
      at_ = (at_ + 1) % kRing;
      TileMap& draft = kIsX ? shared_.b_draft : shared_.a_draft;
      if (threadIdx.x % 32 == 0) {
        redraft_rows(draft, stretch.end_row);
        if (call_.further > 0) redraft_data(draft, data_of<kIsX>(batch_));
      }
      map_ = kIsX ? &maps().b[at_] : &maps().a[at_];
      put_map(draft, map_);
    }
    return {stretch.slices, stretch.first_row, stretch.tile.row, stretch.tile.column, at_};
  }
  template <bool kIsX>
  [[nodiscard]] __device__ const void* data_of(int batch) const {
    if (batch == 0) return kIsX ? call_.x : call_.y;
    return kIsX ? batches_[batch - 1].x : batches_[batch - 1].y;
  }
  __device__ void turn_results_to(int group) {
    group_ = group;
    at_ = (at_ + 1) % kRing;
    const auto rows = static_cast<int>(call_.out);
    const auto columns = static_cast<int>(call_.in);
    make_map({call_.w[group], rows, columns, sizeof(float), kHalf}, shared_.c_draft,
             &maps().c[at_]);
  }
  // A block's slot gets its own y, its half of x, and the half that the other block brings.
  template <Operands kOf>
  __device__ void copy_slice(const StretchCopies& of, int slice, int slot) const {
    const std::uint32_t full = shared_address(&shared_.slot_full[slot]);
    const int row = of.first_row + slice * kTurnDeep;
    if constexpr (kOf == Operands::Y) {
      const std::uint32_t a = slot_address(slot);
      arrive_expecting(full, kTurnHigh * kTurnDeep * 2);
#pragma unroll
      for (int piece = 0; piece < kTurnHigh / kTurnPiece; ++piece) {
        copy_box(a + static_cast<std::uint32_t>(piece * kTurnPieceBytes), map_, row,
                 of.down + piece * kTurnPiece, full);
      }
    } else {
      const int part = rank_ * kTurnPieceBytes / kTurnBlocks;
      const std::uint32_t b = slot_address(slot) + kTurnHigh / kTurnPiece * kTurnPieceBytes +
                              static_cast<std::uint32_t>(part);
      arrive_expecting(full, kTurnAcross * kTurnDeep * 2);
#pragma unroll
      for (int piece = 0; piece < kTurnAcross / kTurnPiece; ++piece) {
        copy_box_to_both(b + static_cast<std::uint32_t>(piece * kTurnPieceBytes), map_,
                         row + rank_ * kTurnDeep / kTurnBlocks, of.across + piece * kTurnPiece,
                         full);
      }
    }
  }

  // --- products ---

  // Every second tile is this warpgroup's. A group of no rows has no slices, and its sums are zero.
  template <run::Write kWrite>
  __device__ void multiply_tiles() {
    const int mine = half_of_thread();
    const int other = 1 - mine;
    TurnWalk walk(call_, shared_.tiles);
    for (int number = 0; !walk.is_over(); ++number) {
      const int slices =
          slices_of_all<kTurnDeep>(call_, batches_, shared_.tiles, walk.tile().group);
      const int chunks = walk.chunks();
      walk.advance();
      if (number % 2 != mine) {
        slot_turn_.skip(slices);
        chunk_turn_.skip(chunks);
        continue;
      }
      const bool gives = !walk.is_over();
      TurnSums sums[kTurnHalves] = {};
      if (number > 0) wait_for_turn(TurnAt::Products, mine);
      multiply(slices, sums);
      if (gives) give_turn(TurnAt::Products, other);
      wait_for_products<0>();
      if (slices > 0) leave(slot_before_);
      if (number > 0) wait_for_turn(TurnAt::Chunks, mine);
      put_results<kWrite>(chunks, sums);
      if (gives) give_turn(TurnAt::Chunks, other);
    }
  }

  // Adds up all slices, of which the last is under way behind it. A slot is left when the products
  // that read it are over, one slice later.
  __device__ void multiply(int slices, TurnSums (&sums)[kTurnHalves]) {
#pragma unroll 1
    for (int slice = 0; slice < slices; ++slice) {
      const int slot = slot_turn_.at();
      wait_for(shared_address(&shared_.slot_full[slot]), slot_turn_.parity());
      // The compiler is shown that these are the same in all lanes, or it puts ten instructions
      // between two products.
      const std::uint64_t first = shared_matrix(slot_address(slot), kTurnPieceBytes);
      const std::uint32_t low = __shfl_sync(0xffffffffU, static_cast<std::uint32_t>(first), 0);
      const auto matrix = [low](int bytes) {
        constexpr std::uint64_t kHigh = shared_matrix(0, kTurnPieceBytes) >> 32 << 32;
        return kHigh | (low + static_cast<std::uint32_t>(bytes / 16));
      };
      begin_products();
#pragma unroll
      for (int step = 0; step < kTurnDeep / 16; ++step) {
        const int down = step * 16 * 128;
#pragma unroll
        for (int half = 0; half < kTurnHalves; ++half) {
          multiply_bands<T, Contiguity::AlongCount, Contiguity::AlongCount>(
              sums[half], matrix(half * kTurnPieceBytes + down),
              matrix(kTurnHigh / kTurnPiece * kTurnPieceBytes + down));
        }
      }
      close_products();
      if (slice > 0) {
        wait_for_products<1>();
        leave(slot_before_);
      }
      slot_before_ = slot;
      slot_turn_.advance();
    }
  }
  // Both blocks write into a slot, and so both wait until it is left in both: two lanes of each
  // warp arrive, one for each block.
  __device__ void leave(int slot) const {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    if (lane < kTurnBlocks) arrive_at(shared_address(&shared_.slot_empty[slot]), lane);
  }

  template <run::Write kWrite>
  __device__ void put_results(int chunks, const TurnSums (&sums)[kTurnHalves]) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
#pragma unroll
    for (int chunk = 0; chunk < kTurnAcross / kTurnColumns * kTurnHalves; ++chunk) {
      if (chunk >= chunks) break;
      const int at = chunk_turn_.at();
      wait_for(shared_address(&shared_.chunk_full[at]), chunk_turn_.parity());
      const std::uint32_t corner = chunk_address(at) + row * 128;
#pragma unroll
      for (int i = 0; i < kTurnColumns / 8; ++i) {
        const int eight = chunk / kTurnHalves * (kTurnColumns / 8) + i;
        const float(&sum)[4] = sums[chunk % kTurnHalves][eight / 8][eight % 8];
        const unsigned byte = (static_cast<unsigned>(i) * 8 + lane % 4 * 2) * sizeof(float);
        const std::uint32_t pair = corner + ((byte / 16) ^ (lane / 4)) * 16 + byte % 16;
        put_pair<kWrite>(pair, sum[0], sum[1]);
        put_pair<kWrite>(pair + 8 * 128, sum[2], sum[3]);
      }
      publish_shared();
      arrive(shared_address(&shared_.chunk_ready[at]));
      chunk_turn_.advance();
    }
  }
  template <run::Write kWrite>
  static __device__ void put_pair(std::uint32_t at, float first, float second) {
    if constexpr (kWrite == run::Write::Add) {
      const float2 before = load_shared_pair(at);
      first = before.x + first;
      second = before.y + second;
    }
    store_shared_pair(at, make_float2(first, second));
  }

  // Both warpgroups multiply the tiles of groups that go through no chunks.
  __device__ void multiply_others() const {
    for (TurnWalk::Tiles walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const Product<T, float> product = product_of<T, float>(call_, shared_.tiles, tile.group);
      if (is_aligned(product.c)) continue;
      const int first = tile.row + rank_in_cluster() * kTurnHigh;
      for (int row = first; row < min(first + kTurnHigh, product.rows()); row += kPlainSide) {
        for (int column = tile.column; column < tile.column + kTurnAcross; column += kPlainSide) {
          multiply_plainly(call_, batches_, product, {tile.group, row, column});
        }
      }
    }
  }

  const run::GroupedProduct& call_;
  const Batch* batches_;
  TurnShared& shared_;
  std::uint32_t slots_;
  Rotation<kTurnSlots> slot_turn_;
  Rotation<kTurnChunks> chunk_turn_;
  int slot_before_ = 0;     ///< the slot of the last slice
  TileMap* map_ = nullptr;  ///< of the operand that a warp asks for
  int group_ = -1;          ///< the group whose descriptors a warp uses; -1 before the first
  int batch_ = 0;           ///< the batch whose descriptors it uses
  int at_ = 0;              ///< the place of these in the ring
  int rank_ = rank_in_cluster();
};

/// A kernel for GroupedProduct, of gradients of weights into fp32.
template <typename T>
__global__ void CAPO_CLUSTERS_OF(kTurnBlocks) __launch_bounds__(kWideThreads, 1)
    multiply_in_turns(const __grid_constant__ run::GroupedProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ TurnShared shared;
  run::GroupedProduct call = given;
  call.kind = ProductKind::WeightGradient;  // so that the compiler knows
  TurnProduct<T> product(call, given.batches, shared, slots);
  const bool prepares = threadIdx.x == kWideThreads - 1;
  const int warp = static_cast<int>(threadIdx.x) / 32 - 2 * kWarpgroup / 32;
  if (prepares) shared.prepare();
  if (warp == 0) product.template draft<Operands::Y>();
  if (warp == 1) product.template draft<Operands::X>();
  find_tiles<kTurnBlocks * kTurnHigh, kTurnAcross>(call, given.batches, shared.tiles);
  sync_cluster();  // barriers of both blocks are there
  // The registers of 3 x 168 are divided anew: 56 + 2 x 224.
  if (threadIdx.x < 2 * kWarpgroup) {
    take_registers<224>();
    product.multiply_all();
  } else {
    give_registers<56>();
    if (warp == 0) product.template copy_operands<Operands::Y>();
    if (warp == 1) product.template copy_operands<Operands::X>();
    if (warp == 2) product.copy_results_before();
    if (warp == 3 && threadIdx.x % 32 == 0) product.store_results();
    __syncwarp();
  }
  __syncthreads();
  sync_cluster();  // until nobody arrives here any more
  if (prepares) give_ring(shared.ring);
#else
  __trap();
#endif
}

}  // namespace capo::gpu
