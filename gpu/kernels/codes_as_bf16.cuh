// MXFP8's codes times their scales as bf16 numbers, which they are exactly down to 2^-133.
//
// A code becomes bf16 by its bits: with the sign in place and the rest moved up by four it is
// 2^-120 of its number. A multiplication by a power of two makes up for that and for the scale, and
// is exact. Where the power would be infinite, two do so. Of four codes in a word the first and
// third make one pair and the second and fourth another, which costs least. Tested by
// tests/gpu/codes_test.cpp.

#pragma once

#include <cstdint>

namespace capo::gpu {

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
