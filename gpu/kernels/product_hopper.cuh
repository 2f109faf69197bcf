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
// and besides it GroupTiles (8.2 KB), the slices of product_plain.cuh (8.5 KB) for groups whose
// weights do not lie at a multiple of 16 bytes, and barriers.
//
// The engine needs a descriptor of each matrix, and only the device knows where weights lie and
// where groups end. So the warps that ask for copies make descriptors for each group they come to.
// These lie in global memory, since the engine reads none from shared memory, in a ring that the
// block has for itself as long as it runs. A ring is longer than slots or chunks are, so that a
// descriptor is overwritten only after all copies that used it are done.

#pragma once

#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_tiles.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kWideHigh = 128;
inline constexpr int kWideAcross = 256;
inline constexpr int kHalf = 64;  ///< rows of a tile that one warpgroup multiplies
inline constexpr int kHalves = kWideHigh / kHalf;
inline constexpr int kWideThreads = 3 * kWarpgroup;
inline constexpr int kChunkBytes = kHalf * 128;

/// How a block divides its shared memory.
struct WideShape {
  int deep;    ///< elements of a slice along the depth; 64 where an operand is contiguous there
  int slots;   ///< slices that are there or on their way
  int chunks;  ///< chunks of results of each half; 0 means that threads write results themselves

  [[nodiscard]] __host__ __device__ constexpr int a_bytes() const { return kWideHigh * deep * 2; }
  [[nodiscard]] __host__ __device__ constexpr int slot_bytes() const {
    return (kWideHigh + kWideAcross) * deep * 2;
  }
  [[nodiscard]] __host__ __device__ constexpr int bytes() const {
    return slots * slot_bytes() + kHalves * chunks * kChunkBytes;
  }
};
/// The divisions there are; kernels are templates of this, as nvcc has none of structs.
enum class WideFor : std::uint8_t {
  Rows,      ///< results of rows: forward, and gradients of inputs
  Epilogue,  ///< forward that goes on with its result, which has two sides
  FewRows,   ///< gradients of weights that sum over few rows, and move more results than operands
  ManyRows,  ///< other gradients of weights
};
[[nodiscard]] __host__ __device__ constexpr WideShape shape_for(WideFor what) {
  if (what == WideFor::FewRows) return {.deep = 32, .slots = 5, .chunks = 5};
  if (what == WideFor::ManyRows) return {.deep = 64, .slots = 3, .chunks = 4};
  return {.deep = 64, .slots = 4, .chunks = 0};
}

// --- rings of descriptors ------------------------------------------------------------------------

inline constexpr int kRing = 8;
struct MapRing {
  TileMap a[kRing];
  TileMap b[kRing];
  TileMap c[kRing];
};
/// There is a ring for each block that can run at the same time: a block fills a multiprocessor,
/// and no device of sm_90 has as many. Products on several streams take different rings.
struct MapRings {
  static constexpr unsigned kCount = 256;
  unsigned taken[kCount];
  MapRing rings[kCount];
};
static __device__ MapRings map_rings;

__device__ inline unsigned take_ring() {
  unsigned ring;
  asm("mov.u32 %0, %%smid;\n" : "=r"(ring));
  ring %= MapRings::kCount;
  while (atomicExch(&map_rings.taken[ring], 1U) != 0) ring = (ring + 1) % MapRings::kCount;
  return ring;
}
__device__ inline void give_ring(unsigned ring) {
  __threadfence();
  atomicExch(&map_rings.taken[ring], 0U);
}

// --- slots and chunks ----------------------------------------------------------------------------

/// A place among kCount that are used in turn, and the parity of the phase its barriers are in.
template <int kCount>
class Rotation {
 public:
  __device__ void advance() {
    ++at_;
    if (at_ < kCount) return;
    at_ = 0;
    parity_ ^= 1;
  }
  [[nodiscard]] __device__ int at() const { return at_; }
  [[nodiscard]] __device__ std::uint32_t parity() const { return parity_; }

 private:
  int at_ = 0;
  std::uint32_t parity_ = 0;
};

template <WideFor kFor>
struct WideShared {
  static constexpr WideShape kShape = shape_for(kFor);
  static constexpr int kChunks = kShape.chunks > 0 ? kShape.chunks : 1;
  static_assert(kRing > kShape.slots && kRing > kShape.chunks);

  GroupTiles tiles;
  TileMap a_draft;
  TileMap b_draft;
  TileMap c_draft;
  unsigned ring;
  std::uint64_t slot_full[kShape.slots];        ///< completed by the bytes of a slice
  std::uint64_t slot_empty[kShape.slots];       ///< completed by each warp that multiplied
  std::uint64_t chunk_full[kHalves][kChunks];   ///< completed by what results are added to
  std::uint64_t chunk_ready[kHalves][kChunks];  ///< completed by all threads that put results
  std::uint64_t chunk_empty[kHalves][kChunks];  ///< completed when the results were read
};

template <typename T, typename C, ProductKind kKind, WideFor kFor>
class WideProduct {
 public:
  using Shared = WideShared<kFor>;
  static constexpr WideShape kShape = shape_for(kFor);

  /// `batches` are those of the call.
  __device__ WideProduct(const run::GroupedProduct& call, const Batch* batches, Shared& shared,
                         const void* slots)
      : call_(call), batches_(batches), shared_(shared), slots_(shared_address(slots)) {}

  /// For one thread, before all others use anything shared. Its loops stay loops: of 40 barriers in
  /// a row, nvcc 13.0 counts too few as under way, and the last one may be made of what its
  /// registers hold later.
  __device__ void prepare() const {
#pragma unroll 1
    for (int slot = 0; slot < kShape.slots; ++slot) {
      init_barrier(shared_address(&shared_.slot_full[slot]), 1);
      init_barrier(shared_address(&shared_.slot_empty[slot]), kHalves * kWarpgroup / 32);
    }
    for (int half = 0; half < kHalves; ++half) {
#pragma unroll 1
      for (int chunk = 0; chunk < kShape.chunks; ++chunk) {
        init_barrier(shared_address(&shared_.chunk_full[half][chunk]), 1);
        init_barrier(shared_address(&shared_.chunk_ready[half][chunk]), kWarpgroup);
        init_barrier(shared_address(&shared_.chunk_empty[half][chunk]), 1);
      }
    }
    publish_barriers();
    shared_.ring = take_ring();
  }
  /// For one thread, when all are done.
  __device__ void finish() const {
    give_ring(shared_.ring);
  }

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

  /// For warp 1.
  __device__ void copy_results_before() {
    Rotation<Shared::kChunks> turn;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const Product<T, C> product = product_of<T, C>(call_, shared_.tiles, tile.group);
      if (!lies_well(product)) continue;
      if (tile.group != group_) turn_results_to(product, tile.group);
      for (int column = tile.column; column < columns_end(tile); column += kChunkColumns) {
        for (int half = 0; half < kHalves; ++half) {
          wait_for(shared_address(&shared_.chunk_empty[half][turn.at()]), turn.parity() ^ 1);
          const std::uint32_t full = shared_address(&shared_.chunk_full[half][turn.at()]);
          if (threadIdx.x % 32 == 0 && call_.write == run::Write::Overwrite) arrive(full);
          if (threadIdx.x % 32 == 0 && call_.write == run::Write::Add) {
            arrive_expecting(full, kChunkBytes);
            copy_box_once(chunk_address(half, turn.at()), &maps().c[at_],
                          result_row(tile) + half * kHalf, column, full);
          }
          __syncwarp();
        }
        turn.advance();
      }
    }
  }

  /// For one thread of warp 2 and of warp 3.
  __device__ void store_results(int half) {
    Rotation<Shared::kChunks> turn;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      const Product<T, C> product = product_of<T, C>(call_, shared_.tiles, tile.group);
      if (!lies_well(product)) continue;
      const bool is_new = tile.group != group_;
      if (is_new) at_ = (at_ + 1) % kRing;
      group_ = tile.group;
      int before = -1;
      for (int column = tile.column; column < columns_end(tile); column += kChunkColumns) {
        wait_for(shared_address(&shared_.chunk_ready[half][turn.at()]), turn.parity());
        if (is_new && before < 0) acquire_map(&maps().c[at_]);
        store_box_once(&maps().c[at_], result_row(tile) + half * kHalf, column,
                       chunk_address(half, turn.at()));
        if (before >= 0) {
          wait_for_reads<1>();
          arrive(shared_address(&shared_.chunk_empty[half][before]));
        }
        before = turn.at();
        turn.advance();
      }
      wait_for_reads<0>();
      arrive(shared_address(&shared_.chunk_empty[half][before]));
    }
    wait_for_stores();
  }

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
  static constexpr int kChunkColumns = 128 / static_cast<int>(sizeof(C));
  static_assert(kShape.deep == 64 || kIsWeight, "rows along the depth are boxes of 128 bytes");
  static_assert(kShape.chunks != 1, "a chunk is left when the next one is on its way");

  [[nodiscard]] __device__ MapRing& maps() const {
    return map_rings.rings[shared_.ring];
  }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kShape.slot_bytes());
  }
  [[nodiscard]] __device__ std::uint32_t chunk_address(int half, int chunk) const {
    return slot_address(kShape.slots) +
           static_cast<std::uint32_t>((half * kShape.chunks + chunk) * kChunkBytes);
  }
  [[nodiscard]] static __device__ int half() {
    return static_cast<int>(threadIdx.x) / kWarpgroup;
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

  // The row of the tile in the matrix that its descriptor is of.
  [[nodiscard]] __device__ int result_row(const Tile& tile) const {
    return kIsWeight ? tile.row : shared_.tiles.first_row[tile.group] + tile.row;
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
  __device__ void turn_results_to(const Product<T, C>& product, int group) {
    group_ = group;
    at_ = (at_ + 1) % kRing;
    const int rows = kIsWeight ? product.rows() : shared_.tiles.first_row[group + 1];
    const void* first = kKind == ProductKind::Forward ? call_.y : call_.x;
    make_map({kIsWeight ? product.c : first, rows, product.columns(), sizeof(C), kHalf},
             shared_.c_draft, &maps().c[at_]);
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
    multiply(slices_of_all(tile.group), sums);
    if constexpr (kShape.chunks > 0) {
      put_results<kWrite>(columns_end(tile) - tile.column, sums);
      return;
    }
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 * 16;
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
    const auto skipped = static_cast<std::uint32_t>(half() * kShape.a_bytes() / kHalves);
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

  // Puts sums into chunks, each of the sums of some neighbouring eights of columns.
  template <run::Write kWrite>
  __device__ void put_results(int columns, const WideSums& sums) {
    constexpr int kEights = kChunkColumns / 8;
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
#pragma unroll
    for (int chunk = 0; chunk < kWideAcross / kChunkColumns; ++chunk) {
      if (chunk * kChunkColumns >= columns) break;
      const int at = chunk_turn_.at();
      wait_for(shared_address(&shared_.chunk_full[half()][at]), chunk_turn_.parity());
      const std::uint32_t corner = chunk_address(half(), at) + row * 128;
#pragma unroll
      for (int i = 0; i < kEights; ++i) {
        const int eight = chunk * kEights + i;
        const float(&sum)[4] = sums[eight / 8][eight % 8];
        const unsigned byte = (static_cast<unsigned>(i) * 8 + lane % 4 * 2) * sizeof(C);
        const std::uint32_t pair = corner + ((byte / 16) ^ (lane / 4)) * 16 + byte % 16;
        put_pair<kWrite>(pair, sum[0], sum[1]);
        put_pair<kWrite>(pair + 8 * 128, sum[2], sum[3]);
      }
      publish_shared();
      arrive(shared_address(&shared_.chunk_ready[half()][at]));
      chunk_turn_.advance();
    }
  }
  template <run::Write kWrite>
  static __device__ void put_pair(std::uint32_t at, float first, float second) {
    constexpr bool kAdds = kWrite == run::Write::Add;
    if constexpr (sizeof(C) == 4) {
      const float2 before = kAdds ? load_shared_pair(at) : make_float2(0, 0);
      store_shared_pair(at, kAdds ? make_float2(before.x + first, before.y + second)
                                  : make_float2(first, second));
    } else {
      std::uint32_t word = kAdds ? load_shared(at) : 0;
      C both[2];
      memcpy(both, &word, sizeof word);
      both[0] = round_to<C>(kAdds ? to_float(both[0]) + first : first);
      both[1] = round_to<C>(kAdds ? to_float(both[1]) + second : second);
      memcpy(&word, both, sizeof word);
      store_shared(at, word);
    }
  }

  __device__ void multiply_tile_plainly(const Product<T, C>& product, const Tile& tile) const {
    if constexpr (kFor == WideFor::Epilogue) {
      const Sides sides = sides_of(call_, tile, kSide);
      multiply_plainly_across(product, tile, sides.left, kSide, sides.left_end);
      multiply_plainly_across(product, tile, sides.right, kSide, product.columns());
      finish_tile(product, tile, sides);
    } else {
      multiply_plainly_across(product, tile, tile.column, kWideAcross, product.columns());
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

  const run::GroupedProduct& call_;
  const Batch* batches_;
  Shared& shared_;
  std::uint32_t slots_;
  Rotation<kShape.slots> turn_;
  Rotation<Shared::kChunks> chunk_turn_;
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
  if (prepares) product.prepare();
  find_tiles<kWideHigh, kWideAcross>(call, given.batches, shared.tiles);
  if (TileWalk<kWideHigh, kWideAcross>(call, shared.tiles).is_over()) {
    if (prepares) product.finish();
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
      if (warp == 1) product.copy_results_before();
      if (warp >= 2 && threadIdx.x % 32 == 0) product.store_results(warp - 2);
    }
    __syncwarp();
  }
  __syncthreads();
  if (prepares) product.finish();
#else
  __trap();
#endif
}

}  // namespace capo::gpu
