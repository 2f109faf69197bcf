// Numbers of eight bits, and the scales of their blocks, to the bit as every engine has them.
//
//   E4m3   a sign, 4 bits of exponent, 3 of fraction: up to 448, no infinities, one NaN a sign
//   E5m2   a sign, 5 bits of exponent, 2 of fraction: up to 57344, with infinities
//   E8m0   an exponent alone: 2^(bits - 127), and NaN
//
// Rounding is to nearest even, and what is beyond the largest number becomes that number:
// infinities too, since a code that is infinite would leave nothing of its whole block. A NaN
// becomes 0x7f.
//
// A block of a tensor is stored as codes and one scale, which is a power of two, so that a code
// times its scale is a bf16 number exactly, down to 2^-133. It follows from the block's largest
// magnitude, in which NaN is not counted:
//
//   Block   the greatest power of two that keeps the block within 448, held as fp32
//   Mxfp8   the least power of two that is no less than the magnitude over 448, held as E8m0
//
// docs/fp8.md says it in formulas, and whose recipes these are. Tested by codes_test.cpp over all
// codes and all bf16 numbers.

#pragma once

#include "run/kernels/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace capo::run {

struct E4m3 {
  std::uint8_t bits = 0;
};
struct E5m2 {
  std::uint8_t bits = 0;
};
struct E8m0 {
  std::uint8_t bits = 0;
};

inline constexpr float kMostE4m3 = 448;
inline constexpr float kMostE5m2 = 57344;

[[nodiscard]] inline float to_float(E4m3 value) {
  const std::uint32_t sign = (value.bits & 0x80U) << 24;
  const std::uint32_t magnitude = value.bits & 0x7fU;
  if (magnitude == 0x7fU) return std::numeric_limits<float>::quiet_NaN();
  // Read as float bits the magnitude is 2^120 times too small, even if it is subnormal.
  const float number = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) | sign);
}
/// It is an fp16 without its lower half.
[[nodiscard]] inline float to_float(E5m2 value) {
  return to_float(Fp16{static_cast<std::uint16_t>(value.bits << 8)});
}
[[nodiscard]] inline float to_float(E8m0 value) {
  if (value.bits == 0xffU) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(value.bits == 0 ? 0x00400000U : std::uint32_t{value.bits} << 23);
}

namespace codes {

// The nearest number with kFraction bits of fraction whose least normal one is 2^kLeast. `one_step`
// is a float whose last place is that of the numbers below.
template <int kFraction, int kLeast>
[[nodiscard]] inline std::uint8_t nearest(float value, float most, float one_step) {
  constexpr int kCut = 23 - kFraction;
  constexpr std::uint32_t kBelow = (1U << (kCut - 1)) - 1;
  if (std::isnan(value)) return 0x7f;
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 24 & 0x80U;
  const float magnitude = std::min(std::abs(value), most);
  const auto of = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t normal =
      (of + kBelow + (of >> kCut & 1U) - (static_cast<std::uint32_t>(126 + kLeast) << 23)) >> kCut;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(magnitude + one_step) - std::bit_cast<std::uint32_t>(one_step);
  const bool is_normal = of >= static_cast<std::uint32_t>(127 + kLeast) << 23;
  return static_cast<std::uint8_t>(sign | (is_normal ? normal : subnormal));
}

}  // namespace codes

template <>
[[nodiscard]] inline E4m3 round_to<E4m3>(float value) {
  return {codes::nearest<3, -6>(value, kMostE4m3, 0x1p14F)};
}
template <>
[[nodiscard]] inline E5m2 round_to<E5m2>(float value) {
  return {codes::nearest<2, -14>(value, kMostE5m2, 0x1p7F)};
}

/// Numbers are multiplied by `up` before they become codes; a code stands for itself times `down`.
struct BlockScale {
  float up = 1;
  float down = 1;
};

/// The scale of a block of recipe Block, by its largest magnitude. A block of zeros has 1, and so
/// has one that holds an infinity.
[[nodiscard]] inline BlockScale scale_of_block(float largest) {
  if (largest == 0 || std::isinf(largest)) return {};
  const float scale = std::min(kMostE4m3 / largest, 0x1.fep127F);
  const auto power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0x7f800000U);
  return {.up = power, .down = 1.0F / power};
}

/// The scale of a block of recipe Mxfp8.
[[nodiscard]] inline E8m0 exponent_of_block(float largest) {
  const float share = largest * (1.0F / kMostE4m3);
  if (std::isinf(share)) return {0xfe};
  const auto bits = std::bit_cast<std::uint32_t>(share);
  const std::uint32_t exponent = bits >> 23;
  const std::uint32_t fraction = bits & 0x7fffffU;
  // An exponent of zero stands for 2^-127, which lies in the middle of the subnormal numbers.
  const bool is_more = exponent == 0 ? fraction > 0x400000U : fraction != 0;
  return {static_cast<std::uint8_t>(exponent + (is_more && exponent < 0xfeU ? 1U : 0U))};
}
[[nodiscard]] inline BlockScale scale_of(E8m0 exponent) {
  const std::uint32_t opposite = 254U - exponent.bits;  // 2^127 is no number's reciprocal exactly
  return {.up = to_float(E8m0{static_cast<std::uint8_t>(opposite)}), .down = to_float(exponent)};
}

}  // namespace capo::run
