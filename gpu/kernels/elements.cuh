// Numbers on the device: to fp32 and back to nearest even, one at a time or eight.
//
// Eight neighbours are read and written 16 bytes at once where they lie so and are all there, else
// one by one: kernels that go through their data by eights need no second version for rows of odd
// length or for tensors at odd addresses. No pointer is assumed to be the only one to its data:
// gradients may be written in place. Tested by tests/gpu/.

#pragma once

#include "run/kernels/grouped_product.h"

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

/// The factor of a row; 1 where there are none.
__device__ inline float factor_of(const float* factors, std::int64_t row) {
  return factors == nullptr ? 1.0F : factors[row];
}

/// For what is rounded to T. To 16 bits it is exact enough by the unit for special functions, which
/// is off by a few millionths and takes a quarter of the instructions.
template <typename T>
__device__ float sigmoid(float a) {
  if constexpr (sizeof(T) == 4) return 1.0F / (1.0F + expf(-a));
  constexpr float kLog2E = 1.4426950408889634F;
  float power;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(-kLog2E * a));
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(1.0F + power));
  return result;
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

/// Eight numbers of 16 bits as the 16 bytes that they are.
template <typename T>
__device__ Eight unpacked(const uint4& bytes) {
  const std::uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
  Eight eight;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    T both[2];
    memcpy(both, &words[i], sizeof both);
    eight.at[2 * i] = to_float(both[0]);
    eight.at[2 * i + 1] = to_float(both[1]);
  }
  return eight;
}
template <typename T>
__device__ uint4 packed(const Eight& eight) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const T both[2] = {round_to<T>(eight.at[2 * i]), round_to<T>(eight.at[2 * i + 1])};
    memcpy(&words[i], both, sizeof both);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ inline void add_bias(Eight& to, const Eight& bias, float scale) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to.at[i] += scale * bias.at[i];
}

/// For what is rounded to T.
template <typename T>
__device__ Eight swiglu(const Eight& gate, const Eight& linear, float probability) {
  Eight result;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    result.at[i] = gate.at[i] * sigmoid<T>(gate.at[i]) * linear.at[i] * probability;
  }
  return result;
}

/// The gradients of a gate and of a linear part, and silu(gate).
struct SwiGluSlopes {
  float gate;
  float linear;
  float activated;
};

/// For what is rounded to T. It says itself what is added at once, so that kernels of several files
/// agree to the bit.
template <typename T>
__device__ SwiGluSlopes swiglu_slopes(float gate, float linear, float incoming, float probability) {
  const float s = sigmoid<T>(gate);
  const float activated = __fmul_rn(gate, s);
  const float slope = __fmul_rn(s, __fmaf_rn(gate, __fsub_rn(1.0F, s), 1.0F));  // of silu
  const float scaled = __fmul_rn(incoming, probability);
  return {.gate = __fmul_rn(__fmul_rn(scaled, linear), slope),
          .linear = __fmul_rn(scaled, activated),
          .activated = activated};
}

/// The gradients of eight gates and linear parts take their places. Returns the sum of their terms
/// in the gradient of the probability, in ascending order.
template <typename T>
__device__ float swiglu_gradient(Eight& gate, Eight& linear, const Eight& incoming,
                                 float probability) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const SwiGluSlopes slopes =
        swiglu_slopes<T>(gate.at[i], linear.at[i], incoming.at[i], probability);
    sum = __fmaf_rn(__fmul_rn(incoming.at[i], slopes.activated), linear.at[i], sum);
    gate.at[i] = slopes.gate;
    linear.at[i] = slopes.linear;
  }
  return sum;
}

}  // namespace capo::gpu
