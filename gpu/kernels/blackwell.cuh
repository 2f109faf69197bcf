// This file makes functions of the instructions of sm_100a that scaled_blackwell.cuh consists of:
// tensor memory, and products of codes with scales of blocks (tcgen05), which one thread asks for.
//
// Addresses are 32-bit numbers: of shared memory as in hopper.cuh, and of tensor memory a lane in
// the upper half and a column in the lower. A kernel calls these functions only where
// __CUDA_ARCH_FEAT_SM100_ALL is defined. Nothing here has been run: no device of sm_100 was there.
// The test gpu.blackwell_compiles compiles it.

#pragma once

#include "gpu/kernels/hopper.cuh"

#include <cstdint>

namespace capo::gpu {

// --- tensor memory -------------------------------------------------------------------------------

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

// --- descriptors ---------------------------------------------------------------------------------

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

// --- products ------------------------------------------------------------------------------------

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

}  // namespace capo::gpu
