// bf16 and fp16 as bits, to float and back to nearest even: the rounding that every kernel ends
// with.
//
// Every NaN becomes the one that a GPU's units make of it, so that a step that reads what it should
// not leaves the same bits on either engine. Infinities stay; fp16 beyond 65504 becomes infinite;
// subnormal numbers are kept. The functions are inline and have no branches, since the kernels'
// loops consist of little else: the compiler can vectorise them. Tested by numbers_test.cpp over
// all 65,536 bit patterns of each.

#pragma once

#include <bit>
#include <cstdint>

namespace capo::run {

struct Bf16 {
  std::uint16_t bits = 0;
};
struct Fp16 {
  std::uint16_t bits = 0;
};

[[nodiscard]] inline float to_float(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
[[nodiscard]] inline float to_float(Fp16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  // Read as float bits the magnitude is 2^112 times too small, even if it is subnormal; only
  // infinities and NaNs are further off.
  const float magnitude = std::bit_cast<float>((value.bits & 0x7fffU) << 13) * 0x1p112F;
  const std::uint32_t beyond = (value.bits & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign | beyond);
}
[[nodiscard]] inline float to_float(float value) {
  return value;
}

/// round_to<Bf16>(x)
template <typename T>
[[nodiscard]] T round_to(float value);

template <>
[[nodiscard]] inline Bf16 round_to<Bf16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Adds just under half of the last place, and a little more if that makes an odd one even.
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>(is_nan ? 0x7fffU : rounded)};
}

template <>
[[nodiscard]] inline Fp16 round_to<Fp16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Rounds like bf16, with the exponent's other bias taken off.
  const std::uint32_t normal = (magnitude + 0xfffU + (magnitude >> 13 & 1U) - (112U << 23)) >> 13;
  // The last place of 0.5 is that of a subnormal fp16: the addition rounds.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;  // 2^-14
  result = magnitude >= 0x47800000U ? 0x7c00U : result;                 // 65536
  const bool is_nan = magnitude > 0x7f800000U;
  return {static_cast<std::uint16_t>(is_nan ? 0x7fffU : sign | result)};
}

template <>
[[nodiscard]] inline float round_to<float>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return is_nan ? std::bit_cast<float>(0x7fffffffU) : value;
}

}  // namespace capo::run
