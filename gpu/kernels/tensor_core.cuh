// The instructions that a product on tensor cores consists of, each as a function: asynchronous
// copies into shared memory, fragments out of it, and the multiplication of fragments.
//
// Addresses in shared memory are 32-bit numbers here, as these instructions take them. Names and
// layouts are PTX's: cp.async, ldmatrix, mma.sync.m16n8k16. Needs sm_80.

#pragma once

#include "gpu/kernels/elements.cuh"

#include <cstdint>

namespace capo::gpu {

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

enum class Fetch : std::uint8_t { Zeros = 0, Bytes = 16 };

/// 16 bytes, or as many zeros without looking at `from`.
__device__ inline void copy_later(std::uint32_t to, const void* from, Fetch fetch) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
               "r"(static_cast<int>(fetch))
               : "memory");
}

/// The copies since the last call are one group, which may be empty.
__device__ inline void close_copy_group() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/// Waits until at most kOpen groups of this thread are under way.
template <int kOpen>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kOpen) : "memory");
}

/// Brings the 128 bytes around an address into the L2 cache.
__device__ inline void prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(address));
}

enum class Turn : std::uint8_t { Straight, Transposed };

/// Four 8 x 8 matrices; lanes 8 i to 8 i + 7 hold the addresses of the rows of matrix i.
template <Turn kTurn>
__device__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t row) {
  if constexpr (kTurn == Turn::Straight) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
  }
}

/// c += a b for 16 x 8 elements and a depth of 16.
template <typename T>
__device__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b_low,
                             std::uint32_t b_high);

template <>
__device__ inline void multiply_add<Bf16>(float (&c)[4], const std::uint32_t (&a)[4],
                                          std::uint32_t b_low, std::uint32_t b_high) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

template <>
__device__ inline void multiply_add<Fp16>(float (&c)[4], const std::uint32_t (&a)[4],
                                          std::uint32_t b_low, std::uint32_t b_high) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

}  // namespace capo::gpu
