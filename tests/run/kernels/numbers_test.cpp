#include "run/kernels/numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace capo::run {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kQuietNan = std::numeric_limits<float>::quiet_NaN();

// The numbers as IEEE 754 writes them down.
template <typename T>
struct Layout;
template <>
struct Layout<Bf16> {
  static constexpr int kFractionBits = 7;
  static constexpr int kBias = 127;
};
template <>
struct Layout<Fp16> {
  static constexpr int kFractionBits = 10;
  static constexpr int kBias = 15;
};

template <typename T>
int fraction_of(T value) {
  return value.bits & ((1 << Layout<T>::kFractionBits) - 1);
}
template <typename T>
int exponent_of(T value) {
  return (value.bits & 0x7fff) >> Layout<T>::kFractionBits;
}
template <typename T>
bool is_special(T value) {
  return exponent_of(value) == 2 * Layout<T>::kBias + 1;
}
template <typename T>
bool is_nan(T value) {
  return is_special(value) && fraction_of(value) != 0;
}

template <typename T>
double meaning(T value) {
  const double sign = (value.bits & 0x8000) != 0 ? -1 : 1;
  if (is_special(value)) return fraction_of(value) == 0 ? sign * HUGE_VAL : std::nan("");
  const int exponent = exponent_of(value);
  const int whole = exponent == 0 ? 0 : 1 << Layout<T>::kFractionBits;
  const int power = std::max(exponent, 1) - Layout<T>::kBias - Layout<T>::kFractionBits;
  return sign * std::ldexp(whole + fraction_of(value), power);
}

template <typename T>
T pattern(std::uint32_t bits) {
  return {static_cast<std::uint16_t>(bits)};
}

template <typename T>
class Numbers : public testing::Test {};
using Halves = testing::Types<Bf16, Fp16>;
TYPED_TEST_SUITE(Numbers, Halves);

TYPED_TEST(Numbers, EveryPatternMeansWhatIeee754Says) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = pattern<TypeParam>(bits);
    const float got = to_float(value);
    ASSERT_EQ(std::signbit(got), (bits & 0x8000U) != 0) << bits;
    if (is_nan(value)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(got), meaning(value)) << bits;
    }
  }
}

TYPED_TEST(Numbers, EveryPatternComesBackFromFloat) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = pattern<TypeParam>(bits);
    const std::uint32_t same = is_nan(value) ? 0x7fffU : bits;
    ASSERT_EQ(round_to<TypeParam>(to_float(value)).bits, same);
  }
}

// Between each number and the next one up, of either sign; the last one's next is infinite, and
// lies where the numbers would go on.
TYPED_TEST(Numbers, HalfwayGoesToTheEvenOneAndBesideItToTheNearest) {
  for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const auto lower = pattern<TypeParam>(bits);
    const auto upper = pattern<TypeParam>(bits + 1);
    if (is_special(lower)) break;
    const double step = std::ldexp(1.0, std::max(exponent_of(lower), 1) - Layout<TypeParam>::kBias -
                                            Layout<TypeParam>::kFractionBits);
    const double middle = meaning(lower) + step / 2;
    const auto halfway = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(halfway), middle) << "a float holds it";
    const std::uint32_t even = bits % 2 == 0 ? lower.bits : upper.bits;
    const float below = std::nextafter(halfway, 0.0F);
    const float above = std::nextafter(halfway, kInfinity);
    ASSERT_EQ(round_to<TypeParam>(halfway).bits, even) << bits;
    ASSERT_EQ(round_to<TypeParam>(below).bits, lower.bits) << bits;
    ASSERT_EQ(round_to<TypeParam>(above).bits, upper.bits) << bits;
    ASSERT_EQ(round_to<TypeParam>(-halfway).bits, even | 0x8000U) << bits;
    ASSERT_EQ(round_to<TypeParam>(-below).bits, lower.bits | 0x8000U) << bits;
    ASSERT_EQ(round_to<TypeParam>(-above).bits, upper.bits | 0x8000U) << bits;
  }
}

TYPED_TEST(Numbers, NoNumberIsNearerThanTheOneRoundedTo) {
  std::mt19937 random(7);
  for (int round = 0; round < 1'000'000; ++round) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    const auto rounded = round_to<TypeParam>(value);
    ASSERT_EQ((rounded.bits & 0x8000) != 0, std::signbit(value)) << value;
    if (is_special(rounded)) continue;  // the largest number's upper half is tested above
    const double error = std::abs(meaning(rounded) - static_cast<double>(value));
    const auto up = pattern<TypeParam>(rounded.bits + 1U);
    ASSERT_LE(error, std::abs(meaning(up) - static_cast<double>(value))) << value;
    if ((rounded.bits & 0x7fff) == 0) continue;
    const auto down = pattern<TypeParam>(rounded.bits - 1U);
    ASSERT_LE(error, std::abs(meaning(down) - static_cast<double>(value))) << value;
  }
}

TYPED_TEST(Numbers, EveryNanBecomesThatOfAGpu) {
  // The last ones have all of their payload where the shorter type has no bits.
  for (const std::uint32_t bits : {0x7fc00000U, 0xffc00000U, 0x7fffffffU, 0x7fa00000U, 0x7f800001U,
                                   0xff800001U, 0x7f801000U}) {
    const auto value = std::bit_cast<float>(bits);
    EXPECT_EQ(round_to<TypeParam>(value).bits, 0x7fff) << bits;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(round_to<float>(value)), 0x7fffffffU) << bits;
  }
}

TEST(Numbers, WellKnownOnesInBits) {
  EXPECT_EQ(round_to<Bf16>(1.0F).bits, 0x3f80);
  EXPECT_EQ(round_to<Bf16>(-2.0F).bits, 0xc000);
  EXPECT_EQ(round_to<Bf16>(3.140625F).bits, 0x4049);
  EXPECT_EQ(round_to<Bf16>(kInfinity).bits, 0x7f80);
  EXPECT_EQ(round_to<Bf16>(-kInfinity).bits, 0xff80);
  EXPECT_EQ(round_to<Bf16>(kQuietNan).bits, 0x7fff);
  EXPECT_EQ(round_to<Bf16>(-0.0F).bits, 0x8000);
  EXPECT_EQ(round_to<Fp16>(1.0F).bits, 0x3c00);
  EXPECT_EQ(round_to<Fp16>(-2.0F).bits, 0xc000);
  EXPECT_EQ(round_to<Fp16>(0.333251953125F).bits, 0x3555);
  EXPECT_EQ(round_to<Fp16>(kInfinity).bits, 0x7c00);
  EXPECT_EQ(round_to<Fp16>(-kInfinity).bits, 0xfc00);
  EXPECT_EQ(round_to<Fp16>(kQuietNan).bits, 0x7fff);
  EXPECT_EQ(round_to<Fp16>(-0.0F).bits, 0x8000);
}

TEST(Numbers, BeyondTheLargestIsInfinite) {
  EXPECT_EQ(round_to<Fp16>(65504.0F).bits, 0x7bff);
  EXPECT_EQ(round_to<Fp16>(65519.996F).bits, 0x7bff);
  EXPECT_EQ(round_to<Fp16>(65520.0F).bits, 0x7c00);
  EXPECT_EQ(round_to<Fp16>(65536.0F).bits, 0x7c00);
  EXPECT_EQ(round_to<Fp16>(-1e30F).bits, 0xfc00);
  EXPECT_EQ(round_to<Fp16>(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(round_to<Bf16>(std::bit_cast<float>(0x7f7f7fffU)).bits, 0x7f7f);
  EXPECT_EQ(round_to<Bf16>(std::bit_cast<float>(0x7f7f8000U)).bits, 0x7f80);
  EXPECT_EQ(round_to<Bf16>(std::numeric_limits<float>::lowest()).bits, 0xff80);
}

TEST(Numbers, SubnormalOnesAreKept) {
  EXPECT_EQ(round_to<Fp16>(0x1p-24F).bits, 0x0001);
  EXPECT_EQ(round_to<Fp16>(0x1p-25F).bits, 0x0000) << "halfway to zero, which is even";
  EXPECT_EQ(round_to<Fp16>(0x1.8p-24F).bits, 0x0002);
  EXPECT_EQ(round_to<Fp16>(-0x1.ff8p-15F).bits, 0x83ff) << "the largest subnormal";
  EXPECT_EQ(round_to<Fp16>(0x1.ffcp-15F).bits, 0x0400) << "rounded up to the least normal";
  EXPECT_EQ(round_to<Fp16>(0x1p-149F).bits, 0x0000);
  EXPECT_EQ(round_to<Bf16>(0x1p-133F).bits, 0x0001);
  EXPECT_EQ(round_to<Bf16>(0x1p-134F).bits, 0x0000);
  EXPECT_EQ(to_float(Bf16{1}), 0x1p-133F);
  EXPECT_EQ(to_float(Fp16{1}), 0x1p-24F);
}

TEST(Numbers, AFloatIsItself) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(round_to<float>(-0.1F)),
            std::bit_cast<std::uint32_t>(-0.1F));
  EXPECT_EQ(to_float(0x1p-149F), 0x1p-149F);
}

}  // namespace
}  // namespace capo::run
