// How a block of product_hopper.cuh divides its shared memory, and the descriptors that its copies
// need. By the kernel's WideShape:
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
//
// Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/hopper.cuh"
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

}  // namespace capo::gpu
