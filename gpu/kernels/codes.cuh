// Codes of eight bits and the scales of their blocks on the device, to the bit as
// run/kernels/codes.h has them.
//
// Before sm_89 there is no instruction that makes a code, and CUDA's header does it in some twenty.
// Tested by tests/gpu/codes_test.cpp over all bf16 numbers.

#pragma once

#include "run/kernels/coded_product.h"

#include <cuda_fp8.h>

#include <cstdint>

namespace capo::gpu {

inline constexpr float kMostE4m3 = 448;

__device__ inline std::uint8_t e4m3_of(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}
/// The codes of two neighbours, the first in the lower byte.
__device__ inline unsigned two_e4m3_of(float first, float second) {
  return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE, __NV_E4M3);
}
__device__ inline float float_of_e4m3(std::uint8_t code) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

/// Two to the power of an exponent of fp32, with its bias: 0 stands for 2^-127.
__device__ inline float power_of_two(unsigned exponent) {
  return __uint_as_float(exponent == 0 ? 0x00400000U : exponent << 23);
}
__device__ inline float float_of_e8m0(std::uint8_t bits) {
  return bits == 0xffU ? __uint_as_float(0x7fffffffU) : power_of_two(bits);
}

/// The biased exponent of the power of two that codes of a block are multiplied by; its opposite is
/// that of what numbers are multiplied by to become codes.
[[nodiscard]] __device__ inline unsigned down_of_block(float largest) {
  constexpr unsigned kOne = 127;
  if (largest == 0 || isinf(largest)) return kOne;
  const float scale = fminf(__fdiv_rn(kMostE4m3, largest), 0x1.fep127F);
  return 254U - (__float_as_uint(scale) >> 23);
}
[[nodiscard]] __device__ inline unsigned down_of_mxfp8(float largest) {
  const float share = __fmul_rn(largest, 1.0F / kMostE4m3);
  if (isinf(share)) return 0xfeU;
  const unsigned bits = __float_as_uint(share);
  const unsigned exponent = bits >> 23;
  const unsigned fraction = bits & 0x7fffffU;
  const bool is_more = exponent == 0 ? fraction > 0x400000U : fraction != 0;
  return exponent + (is_more && exponent < 0xfeU ? 1U : 0U);
}
template <run::Scaling kScaling>
[[nodiscard]] __device__ unsigned down_of(float largest) {
  return kScaling == run::Scaling::Block ? down_of_block(largest) : down_of_mxfp8(largest);
}
[[nodiscard]] __device__ inline float up_of(unsigned down) {
  return power_of_two(254U - down);
}

/// A scale in memory.
template <run::Scaling kScaling>
__device__ void put_scale(void* scales, std::int64_t at, unsigned down) {
  if constexpr (kScaling == run::Scaling::Block) {
    static_cast<float*>(scales)[at] = power_of_two(down);
  } else {
    static_cast<std::uint8_t*>(scales)[at] = static_cast<std::uint8_t>(down);
  }
}
template <run::Scaling kScaling>
[[nodiscard]] __device__ float scale_at(const void* scales, std::int64_t at) {
  if constexpr (kScaling == run::Scaling::Block) return static_cast<const float*>(scales)[at];
  return float_of_e8m0(static_cast<const std::uint8_t*>(scales)[at]);
}

// --- codes as bf16 numbers ---

// A code times its scale is a bf16 number exactly, down to 2^-133. It becomes one by its bits: with
// the sign in place and the rest moved up by four it is 2^-120 of its number. A multiplication by a
// power of two makes up for that and for the scale, and is exact. Where the power would be
// infinite, two do so. Of four codes in a word the first and third make one pair and the second and
// fourth another, which costs least.

/// Two pairs of bf16 numbers: of the first and third of four codes, and of the second and fourth.
struct TwoPairs {
  std::uint32_t even;
  std::uint32_t odd;
};

/// Makes bf16 numbers of codes, unless a scale is large or a code that of a NaN.
class CodeReader {
 public:
  /// Codes of one block, whose scale has this exponent.
  __device__ TwoPairs read(std::uint32_t codes, std::uint32_t exponent) {
    constexpr std::uint32_t kTwice = 0x00800080U;  // an exponent of one, in both of a pair
    const std::uint32_t scale = exponent * kTwice + kLess * kTwice;
    const std::uint32_t even = (codes << 4) & kMagnitudes;
    const std::uint32_t odd = (codes >> 4) & kMagnitudes;
    largest_ = __vmaxu2(largest_, __vmaxu2(even, odd));
    largest_exponent_ = max(largest_exponent_, exponent);
    return {product(even | ((codes << 8) & kSigns), scale), product(odd | (codes & kSigns), scale)};
  }
  /// Whether something that was read needs read_slowly().
  [[nodiscard]] __device__ bool has_failed() const {
    constexpr std::uint32_t kMostExponent = 254 - kLess;  // of a scale that is not infinite
    return ((largest_ + 0x00100010U) & 0x08000800U) != 0 || largest_exponent_ > kMostExponent;
  }
  [[nodiscard]] static __device__ TwoPairs read_slowly(std::uint32_t codes,
                                                       std::uint32_t exponent) {
    const std::uint32_t one = exponent == 0 ? 0x40U : exponent << 7;  // 2^-127 is subnormal
    const auto read_pair = [&](std::uint32_t bits, int first) {
      constexpr std::uint32_t kPower120 = 0x7b807b80U;  // twice
      std::uint32_t pair = product(product(bits, kPower120), one | one << 16);
      if ((codes >> first & 0x7fU) == 0x7fU) pair |= 0x00007fffU;
      if ((codes >> (first + 16) & 0x7fU) == 0x7fU) pair |= 0x7fff0000U;
      return pair;
    };
    return {read_pair(((codes << 4) & kMagnitudes) | ((codes << 8) & kSigns), 0),
            read_pair(((codes >> 4) & kMagnitudes) | (codes & kSigns), 8)};
  }

 private:
  static constexpr std::uint32_t kMagnitudes = 0x07f007f0U;
  static constexpr std::uint32_t kSigns = 0x80008000U;
  static constexpr std::uint32_t kLess = 120;

  static __device__ std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    std::uint32_t c = 0;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm("mul.rn.bf16x2 %0, %1, %2;\n" : "=r"(c) : "r"(a), "r"(b));
#endif
    return c;
  }

  std::uint32_t largest_ = 0;  // magnitudes of a pair; the most there can be is NaN's
  std::uint32_t largest_exponent_ = 0;
};

}  // namespace capo::gpu
