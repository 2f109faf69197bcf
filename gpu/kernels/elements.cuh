// Numbers on the device: to fp32 and back to nearest even, one at a time or eight.
//
// Eight neighbours are read and written 16 bytes at once where they lie so and are all there, else
// one by one: kernels that go through their data by eights need no second version for rows of odd
// length or for tensors at odd addresses. No pointer is assumed to be the only one to its data:
// gradients may be written in place. Tested by tests/gpu/.

#pragma once

#include "run/kernels/call.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace capo::gpu {

using Bf16 = __nv_bfloat16;
using Fp16 = __half;

__device__ inline float to_float(Bf16 value) {
  return __bfloat162float(value);
}
__device__ inline float to_float(Fp16 value) {
  return __half2float(value);
}
__device__ inline float to_float(float value) {
  return value;
}

/// round_to<Bf16>(x)
template <typename T>
__device__ T round_to(float value);

template <>
__device__ inline Bf16 round_to<Bf16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline Fp16 round_to<Fp16>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline float round_to<float>(float value) {
  return value;
}

/// One element of a gradient, rounded once.
template <typename T>
__device__ void put(T& gradient, float sum, run::Write write) {
  gradient = round_to<T>(write == run::Write::Add ? to_float(gradient) + sum : sum);
}

__device__ inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

struct Eight {
  float at[8];
};

/// Those of eight that are there; zero beyond.
template <typename T>
__device__ Eight load_eight(const T* from, std::int64_t there) {
  Eight eight;
  if (there >= 8 && is_aligned(from)) {
    alignas(16) T elements[8];
#pragma unroll
    for (unsigned i = 0; i < sizeof elements / 16; ++i) {
      reinterpret_cast<uint4*>(elements)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.at[i] = to_float(elements[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.at[i] = i < there ? to_float(from[i]) : 0.0F;
  }
  return eight;
}

template <typename T>
__device__ void store_eight(T* to, const Eight& eight, std::int64_t there) {
  if (there >= 8 && is_aligned(to)) {
    alignas(16) T elements[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) elements[i] = round_to<T>(eight.at[i]);
#pragma unroll
    for (unsigned i = 0; i < sizeof elements / 16; ++i) {
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(elements)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < there) to[i] = round_to<T>(eight.at[i]);
    }
  }
}

}  // namespace capo::gpu
