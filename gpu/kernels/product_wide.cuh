// Blocks of a product on sm_90a have this in common, whatever they multiply: how a block divides
// its shared memory, the rings of descriptors, and the chunks that gradients of weights go through.
//
// A chunk is 64 rows of 128 bytes of one half of a tile. One warp brings what a gradient is added
// to, the warpgroups that multiply put their sums there, and a thread for each half writes it out.
// All of them go through the block's tiles and chunks in one order; barriers hand a chunk on. A
// group whose gradient does not lie at a multiple of 16 bytes goes through none.
//
// The engine needs a descriptor of each matrix, and only the device knows where weights lie and
// where groups end. So the warps that ask for copies make descriptors for each group they come to.
// These lie in global memory, since the engine reads none from shared memory, in a ring that the
// block has for itself as long as it runs. Copies by each take a slot or a chunk at least, and a
// ring is longer than these are, so that a descriptor is overwritten only after all copies that
// used it are done. Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/product_tiles.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kWideHigh = 128;
inline constexpr int kWideAcross = 256;
inline constexpr int kHalf = 64;  ///< rows of a tile that one instruction multiplies
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
  Rows,       ///< results of rows: forward, and gradients of inputs
  Epilogue,   ///< forward that goes on with its result, which has two sides
  Gates,      ///< gradients of inputs that go on to those of SwiGLU's
  FewRows,    ///< gradients of weights that sum over few rows, and move more results than operands
  ManyRows,   ///< other gradients of weights
  Converted,  ///< results of rows of codes that become bf16, of which slots hold only B
  ConvertedSums,  ///< gradients of weights of such codes
};
[[nodiscard]] __host__ __device__ constexpr WideShape shape_for(WideFor what) {
  if (what == WideFor::FewRows) return {.deep = 32, .slots = 5, .chunks = 5};
  if (what == WideFor::ManyRows) return {.deep = 64, .slots = 3, .chunks = 4};
  if (what == WideFor::Converted) return {.deep = 64, .slots = 3, .chunks = 0};
  if (what == WideFor::ConvertedSums) return {.deep = 64, .slots = 3, .chunks = 2};
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
  __device__ void skip(int count) {
    const int sum = at_ + count;
    at_ = sum % kCount;
    parity_ ^= static_cast<std::uint32_t>(sum / kCount % 2);
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

  /// For one thread, before all others use anything shared. A slot is full after so many arrivals
  /// and all bytes that were announced. The loops stay loops: of 40 barriers in a row, nvcc 13.0
  /// counts too few as under way, and the last one may be made of what its registers hold later.
  __device__ void prepare(int fill = 1) {
#pragma unroll 1
    for (int slot = 0; slot < kShape.slots; ++slot) {
      init_barrier(shared_address(&slot_full[slot]), fill);
      init_barrier(shared_address(&slot_empty[slot]), kHalves * kWarpgroup / 32);
    }
    for (int half = 0; half < kHalves; ++half) {
#pragma unroll 1
      for (int chunk = 0; chunk < kShape.chunks; ++chunk) {
        init_barrier(shared_address(&chunk_full[half][chunk]), 1);
        init_barrier(shared_address(&chunk_ready[half][chunk]), kWarpgroup);
        init_barrier(shared_address(&chunk_empty[half][chunk]), 1);
      }
    }
    publish_barriers();
    ring = take_ring();
  }

  /// For one thread, when all are done.
  __device__ void finish() {
    give_ring(ring);
  }
};

/// The warpgroup that multiplies, by the half of a tile that it has.
[[nodiscard]] __device__ inline int half_of_thread() {
  return static_cast<int>(threadIdx.x) / kWarpgroup;
}

/// Adds up slices, for warps that multiply: `begin` begins the products of the slice in a slot. A
/// slot is left when the products that read it are over, one slice later.
template <typename Shared, int kSlots, typename Begin>
__device__ __forceinline__ void add_up(Shared& shared, Rotation<kSlots>& turn, int slices,
                                       const Begin& begin) {
  const auto leave = [&](int slot) {
    if (threadIdx.x % 32 == 0) arrive(shared_address(&shared.slot_empty[slot]));
  };
  int before = 0;
  for (int slice = 0; slice < slices; ++slice) {
    const int slot = turn.at();
    wait_for(shared_address(&shared.slot_full[slot]), turn.parity());
    begin_products();
    begin(slot);
    close_products();
    if (slice > 0) {
      wait_for_products<1>();
      leave(before);
    }
    before = slot;
    turn.advance();
  }
  wait_for_products<0>();
  if (slices > 0) leave(before);
}

/// The chunks of a kernel for gradients of weights into C; each warp has an object of its own.
template <typename C, WideFor kFor>
class WideChunks {
 public:
  using Shared = WideShared<kFor>;
  static constexpr WideShape kShape = shape_for(kFor);
  static constexpr int kColumns = 128 / static_cast<int>(sizeof(C));  ///< of a chunk
  static_assert(kShape.chunks != 1, "a chunk is left when the next one is on its way");

  /// Chunks lie from an address in shared memory on.
  __device__ WideChunks(const run::GroupedProduct& call, Shared& shared, std::uint32_t first)
      : call_(call), shared_(shared), first_(first) {}

  /// For warp 1.
  __device__ void copy_results_before() {
    Rotation<Shared::kChunks> turn;
    for (Walk walk(call_, shared_.tiles); !walk.is_over(); walk.advance()) {
      const Tile tile = walk.tile();
      if (!is_aligned(call_.w[tile.group])) continue;
      if (tile.group != group_) turn_to(tile.group);
      for (int column = tile.column; column < columns_end(tile); column += kColumns) {
        for (int half = 0; half < kHalves; ++half) {
          wait_for(shared_address(&shared_.chunk_empty[half][turn.at()]), turn.parity() ^ 1);
          const std::uint32_t full = shared_address(&shared_.chunk_full[half][turn.at()]);
          if (threadIdx.x % 32 == 0 && call_.write == run::Write::Overwrite) arrive(full);
          if (threadIdx.x % 32 == 0 && call_.write == run::Write::Add) {
            arrive_expecting(full, kChunkBytes);
            copy_box_once(chunk_address(half, turn.at()), &maps().c[at_], tile.row + half * kHalf,
                          column, full);
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
      if (!is_aligned(call_.w[tile.group])) continue;
      const bool is_new = tile.group != group_;
      if (is_new) at_ = (at_ + 1) % kRing;
      group_ = tile.group;
      int before = -1;
      for (int column = tile.column; column < columns_end(tile); column += kColumns) {
        wait_for(shared_address(&shared_.chunk_ready[half][turn.at()]), turn.parity());
        if (is_new && before < 0) acquire_map(&maps().c[at_]);
        store_box_once(&maps().c[at_], tile.row + half * kHalf, column,
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

  /// Puts the sums of this warpgroup's half, of a tile with so many columns, each chunk some
  /// neighbouring eights of them.
  template <run::Write kWrite>
  __device__ void put_results(int columns, const WideSums& sums) {
    constexpr int kEights = kColumns / 8;
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
#pragma unroll
    for (int chunk = 0; chunk < kWideAcross / kColumns; ++chunk) {
      if (chunk * kColumns >= columns) break;
      const int at = chunk_turn_.at();
      wait_for(shared_address(&shared_.chunk_full[half_of_thread()][at]), chunk_turn_.parity());
      const std::uint32_t corner = chunk_address(half_of_thread(), at) + row * 128;
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
      arrive(shared_address(&shared_.chunk_ready[half_of_thread()][at]));
      chunk_turn_.advance();
    }
  }

 private:
  using Walk = TileWalk<kWideHigh, kWideAcross>;

  [[nodiscard]] __device__ MapRing& maps() const {
    return map_rings.rings[shared_.ring];
  }
  [[nodiscard]] __device__ std::uint32_t chunk_address(int half, int chunk) const {
    return first_ + static_cast<std::uint32_t>((half * kShape.chunks + chunk) * kChunkBytes);
  }
  [[nodiscard]] __device__ int columns_end(const Tile& tile) const {
    return min(tile.column + kWideAcross, static_cast<int>(columns_of(call_)));
  }
  __device__ void turn_to(int group) {
    group_ = group;
    at_ = (at_ + 1) % kRing;
    const auto rows = static_cast<int>(call_.out);
    const auto columns = static_cast<int>(call_.in);
    make_map({call_.w[group], rows, columns, sizeof(C), kHalf}, shared_.c_draft, &maps().c[at_]);
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

  const run::GroupedProduct& call_;
  Shared& shared_;
  std::uint32_t first_;
  Rotation<Shared::kChunks> chunk_turn_;
  int group_ = -1;  ///< the group whose descriptor this warp uses; -1 before the first
  int at_ = 0;      ///< the place of this descriptor in the ring
};

}  // namespace capo::gpu
