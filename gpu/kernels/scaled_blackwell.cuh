// A product of MXFP8's codes on the units of sm_100a, which know blocks of 32 and their scales. It
// was compiled and never run: no device of sm_100 was there, and how fast it is nobody knows.
//
// It is the smallest form that uses the units, and takes what the plain kernel takes: any sizes,
// any alignment, all three kinds. The 128 threads of a block bring a slice of 128 of the depth of
// both operands, one of them asks for its four products, and all wait. Sums stay in tensor memory
// through a whole tile; then each thread reads one row of them and writes it.
//
// Shared memory:
//   a, b       128 lines of 128 codes each, swizzled: piece p of 16 bytes of line l at p ^ (l % 8)
//   of_a, of_b 32 lines of 16 bytes each: word w of line l has the scales of four blocks of vector
//              32 * w + l
// Tensor memory, 256 columns:
//   0          sums: lane l has row l of the tile
//   128, 132   scales of A and of B, four columns each
//
// Its instructions (tcgen05), which one thread asks for, are functions first. Addresses are 32-bit
// numbers: of shared memory as in hopper.cuh, and of tensor memory a lane in the upper half and a
// column in the lower. A kernel calls these functions only where __CUDA_ARCH_FEAT_SM100_ALL is
// defined.
//
// The test gpu.blackwell_compiles compiles it; on a device of sm_100 tests/gpu/codes_test.cpp would
// test it.

#pragma once

#include "gpu/kernels/hopper.cuh"
#include "gpu/kernels/scaled_operands.cuh"

#include <cstdint>

namespace capo::gpu {

/// For a whole warp: waits until so many columns are free, and puts the address of the first into
/// shared memory.
template <int kColumns>
__device__ void take_columns(std::uint32_t into) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  static_assert(kColumns >= 32 && (kColumns & (kColumns - 1)) == 0);
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" ::"r"(into),
      "n"(kColumns)
      : "memory");
#endif
}
/// For the warp that took them.
template <int kColumns>
__device__ void give_columns(std::uint32_t columns) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;\n" ::"r"(columns),
               "n"(kColumns)
               : "memory");
#endif
}

/// For a whole warp: sixteen columns of a thread's own lane, of the 32 that its warp may read.
__device__ inline void load_columns(std::uint32_t from, float (&to)[16]) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  std::uint32_t words[16];
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];\n"
      "tcgen05.wait::ld.sync.aligned;\n"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]), "=r"(words[4]),
        "=r"(words[5]), "=r"(words[6]), "=r"(words[7]), "=r"(words[8]), "=r"(words[9]),
        "=r"(words[10]), "=r"(words[11]), "=r"(words[12]), "=r"(words[13]), "=r"(words[14]),
        "=r"(words[15])
      : "r"(from)
      : "memory");
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i] = __uint_as_float(words[i]);
#endif
}

/// Work of this thread in tensor memory comes before that of others behind a barrier of threads,
/// and theirs before it comes before that of this thread behind it.
__device__ inline void end_before_barrier() {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile("tcgen05.fence::before_thread_sync;\n" ::: "memory");
#endif
}
__device__ inline void begin_after_barrier() {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile("tcgen05.fence::after_thread_sync;\n" ::: "memory");
#endif
}

namespace blackwell {

inline constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;

/// A matrix of lines of 128 bytes, each along the depth; eight of them, 1024 bytes, lie swizzled as
/// hopper.cuh's copies bring them, at a multiple of 1024.
[[nodiscard]] __host__ __device__ constexpr std::uint64_t swizzled_lines(std::uint32_t at) {
  constexpr std::uint64_t kEightLines = 1024 / 16;
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{2} << 61;
  return (at / 16) | kEightLines << 32 | kVersion | kSwizzle128;
}
/// 32 lines of 16 bytes, side by side.
[[nodiscard]] __host__ __device__ constexpr std::uint64_t plain_lines(std::uint32_t at) {
  constexpr std::uint64_t kEightLines = 8 * 16 / 16;
  return (at / 16) | kEightLines << 32 | kVersion;
}

/// A product of E4M3 codes along the depth, times E8M0 scales, of which both operands' are byte
/// `block` of their words.
[[nodiscard]] __host__ __device__ constexpr std::uint32_t scaled_product(int high, int across,
                                                                         int block) {
  constexpr std::uint32_t kE8m0 = 1U << 23;
  const auto byte = static_cast<std::uint32_t>(block);
  return static_cast<std::uint32_t>(across / 8) << 17 | kE8m0 |
         static_cast<std::uint32_t>(high / 16) << 24 | byte << 29 | byte << 4;
}
static_assert(scaled_product(128, 128, 0) == 0x08a00000U);
static_assert(scaled_product(128, 128, 3) == 0x68a00030U);

}  // namespace blackwell

/// Makes what this thread wrote to shared memory visible to copies of scales and to products.
__device__ inline void publish_operands() {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
}
/// Brings 32 lines of 16 bytes into four columns, the same into the lanes of each warp.
__device__ inline void copy_scales(std::uint32_t columns, std::uint64_t lines) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;\n" ::"r"(columns), "l"(lines)
               : "memory");
#endif
}
/// sums = A B, or sums += A B; 32 of the depth.
__device__ inline void multiply_scaled_codes(std::uint32_t sums, std::uint64_t a, std::uint64_t b,
                                             std::uint32_t product, std::uint32_t a_scales,
                                             std::uint32_t b_scales, bool adds) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X "
      "[%0], %1, %2, %3, [%4], [%5], adds;\n"
      "}\n" ::"r"(sums),
      "l"(a), "l"(b), "r"(product), "r"(a_scales), "r"(b_scales), "r"(adds ? 1 : 0)
      : "memory");
#endif
}
/// The barrier is arrived at when all that this thread asked for is done.
__device__ inline void arrive_after_products(std::uint32_t barrier) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];\n" ::"r"(barrier)
      : "memory");
#endif
}

inline constexpr int kBlackwellSide = 128;
inline constexpr int kBlackwellDeep = 128;
inline constexpr int kBlackwellThreads = 128;

struct alignas(1024) BlackwellShared {
  static constexpr int kColumns = 256;

  std::uint8_t a[kBlackwellSide * kBlackwellDeep];
  std::uint8_t b[kBlackwellSide * kBlackwellDeep];
  std::uint32_t of_a[kBlackwellSide];
  std::uint32_t of_b[kBlackwellSide];
  std::uint64_t done;  ///< completed when the products of a slice are
  std::uint32_t columns;
};

/// For a whole block.
class BlackwellTile {
 public:
  using Operand = ScaledOperand<run::Scaling::Mxfp8>;

  explicit __device__ BlackwellTile(BlackwellShared& shared) : shared_(shared) {}

  __device__ void begin() const {
    if (threadIdx.x == 0) {
      init_barrier(shared_address(&shared_.done), 1);
      publish_barriers();
    }
    if (threadIdx.x < 32) {
      take_columns<BlackwellShared::kColumns>(shared_address(&shared_.columns));
    }
    end_before_barrier();
    __syncthreads();
    begin_after_barrier();
  }
  __device__ void end() const {
    __syncthreads();
    if (threadIdx.x < 32) give_columns<BlackwellShared::kColumns>(shared_.columns);
  }

  /// Adds up the whole depth of a tile.
  __device__ void multiply(const Operand& a, const Operand& b, const Tile& tile) {
    for (int depth = 0; depth < a.depth; depth += kBlackwellDeep) {
      bring_codes(a, tile.row, depth, shared_.a);
      bring_codes(b, tile.column, depth, shared_.b);
      bring_scales(a, tile.row, depth, shared_.of_a);
      bring_scales(b, tile.column, depth, shared_.of_b);
      publish_operands();
      __syncthreads();
      if (threadIdx.x == 0) ask_for_products(depth > 0);
      wait_for(shared_address(&shared_.done), parity_);
      parity_ ^= 1;
    }
    begin_after_barrier();
  }

  /// Calls put(column, sum) for the columns of a thread's row; all zero if the depth is.
  template <typename Put>
  __device__ void for_each_sum(int depth, Put put) const {
    const std::uint32_t lanes = threadIdx.x / 32 * 32 << 16;
    for (int first = 0; first < kBlackwellSide; first += 16) {
      float sums[16] = {};
      __syncwarp();
      if (depth > 0) load_columns(shared_.columns + lanes + static_cast<unsigned>(first), sums);
#pragma unroll
      for (int i = 0; i < 16; ++i) put(first + i, sums[i]);
    }
    end_before_barrier();
    __syncthreads();  // the next tile's products take the place of these sums
    begin_after_barrier();
  }

 private:
  static constexpr int kPieces = kBlackwellDeep / 16;  // of a line
  static constexpr int kBlocks = kBlackwellDeep / 32;
  static constexpr std::uint32_t kOfA = 128;  // columns
  static constexpr std::uint32_t kOfB = 132;

  // Zeros where there is nothing.
  static __device__ void bring_codes(const Operand& of, int first, int depth, std::uint8_t* to) {
    for (auto at = static_cast<int>(threadIdx.x); at < kBlackwellSide * kPieces;
         at += kBlackwellThreads) {
      const int line = at / kPieces;
      const int piece = at % kPieces;
      const int from = depth + piece * 16;
      uint4 codes = make_uint4(0, 0, 0, 0);
      if (first + line < of.count && from < of.depth) {
        codes = sixteen_codes(of.codes + (first + line) * of.step + from, of.depth - from);
      }
      *reinterpret_cast<uint4*>(to + line * kBlackwellDeep + (piece ^ line % 8) * 16) = codes;
    }
  }
  static __device__ uint4 sixteen_codes(const std::uint8_t* from, int there) {
    if (there >= 16 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      return *reinterpret_cast<const uint4*>(from);
    }
    std::uint32_t words[4] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (i < there) words[i / 4] |= std::uint32_t{from[i]} << i % 4 * 8;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  // Ones where there is nothing, since zeros are multiplied by them.
  static __device__ void bring_scales(const Operand& of, int first, int depth, std::uint32_t* to) {
    constexpr std::uint32_t kOne = 127;
    const auto vector = static_cast<int>(threadIdx.x);
    const auto* const scales = static_cast<const std::uint8_t*>(of.scales) + of.first_scale;
    std::uint32_t word = 0;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const bool is_there = first + vector < of.count && depth + block * 32 < of.depth;
      const std::int64_t at = (depth / 32 + block) * of.scale_step + first + vector;
      word |= (is_there ? std::uint32_t{scales[at]} : kOne) << block * 8;
    }
    to[vector % 32 * 4 + vector / 32] = word;
  }

  // Copies of scales and products are done in the order in which one thread asks for them.
  __device__ void ask_for_products(bool adds) const {
    const std::uint32_t columns = shared_.columns;
    begin_after_barrier();
    copy_scales(columns + kOfA, blackwell::plain_lines(shared_address(shared_.of_a)));
    copy_scales(columns + kOfB, blackwell::plain_lines(shared_address(shared_.of_b)));
    const std::uint64_t a = blackwell::swizzled_lines(shared_address(shared_.a));
    const std::uint64_t b = blackwell::swizzled_lines(shared_address(shared_.b));
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const auto skipped = static_cast<std::uint64_t>(block * 32 / 16);
      multiply_scaled_codes(columns, a + skipped, b + skipped,
                            blackwell::scaled_product(kBlackwellSide, kBlackwellSide, block),
                            columns + kOfA, columns + kOfB, adds || block > 0);
    }
    arrive_after_products(shared_address(&shared_.done));
  }

  BlackwellShared& shared_;
  std::uint32_t parity_ = 0;
};

template <typename C>
__device__ void multiply_on_blackwell(const run::GroupedProduct& call,
                                      const BlackwellTile::Operand& a,
                                      const BlackwellTile::Operand& b, C* c, const Tile& tile,
                                      BlackwellTile& product) {
  product.multiply(a, b, tile);
  const int row = tile.row + static_cast<int>(threadIdx.x);
  product.for_each_sum(a.depth, [&](int column, float sum) {
    const int across = tile.column + column;
    if (row < a.count && across < b.count) {
      put(c[std::int64_t{row} * b.count + across], sum, call.write);
    }
  });
}

/// A kernel for ScaledProduct.
template <typename C>
__global__ void __launch_bounds__(kBlackwellThreads)
    multiply_scaled_on_blackwell(const __grid_constant__ run::ScaledProduct given) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  constexpr auto kMxfp8 = run::Scaling::Mxfp8;
  __shared__ BlackwellShared shared;
  __shared__ GroupTiles tiles;
  __shared__ DepthGroups depths;
  const run::GroupedProduct call = seen(given);
  const ScaledSides sides = operands_of(given);
  const bool sums_rows = call.kind == ProductKind::WeightGradient;
  BlackwellTile product(shared);
  product.begin();
  if (sums_rows && threadIdx.x >= 32 && threadIdx.x < 64) find_depths(call.rows, depths);
  find_tiles<kBlackwellSide, kBlackwellSide>(call, nullptr, tiles);
  TileWalk<kBlackwellSide, kBlackwellSide> walk(call, tiles);
  for (; !walk.is_over(); walk.advance()) {
    const Tile tile = walk.tile();
    if (sums_rows) {
      const auto out = static_cast<int>(call.out);
      const auto in = static_cast<int>(call.in);
      multiply_on_blackwell(call, scaled_columns<kMxfp8>(sides.a, call, depths, tile.group, out),
                            scaled_columns<kMxfp8>(sides.b, call, depths, tile.group, in),
                            static_cast<C*>(call.w[tile.group]), tile, product);
    } else {
      C* const y = static_cast<C*>(call.y) + tiles.first_row[tile.group] * call.out;
      multiply_on_blackwell(call, scaled_rows<kMxfp8>(sides.a, call, tiles, tile.group),
                            scaled_weights<kMxfp8>(sides.b, call, tile.group), y, tile, product);
    }
  }
  product.end();
#else
  __trap();
#endif
}

}  // namespace capo::gpu
