// Every code, and every bf16 number as a code, against the layouts of the formats in double.

#include "run/kernels/codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace capo::run {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

struct Format {
  int fraction_bits;
  int bias;
  int first_special;  ///< magnitudes from here on are no finite numbers
};
constexpr Format kE4m3{3, 7, 0x7f};
constexpr Format kE5m2{2, 15, 0x7c};

// The number as the format's paper has it (FP8 Formats for Deep Learning, table 1).
double number_of(std::uint8_t code, const Format& of) {
  const int magnitude = code & 0x7f;
  const int exponent = magnitude >> of.fraction_bits;
  const int fraction = magnitude & ((1 << of.fraction_bits) - 1);
  const int whole = exponent == 0 ? 0 : 1 << of.fraction_bits;
  const double number =
      std::ldexp(whole + fraction, std::max(exponent, 1) - of.bias - of.fraction_bits);
  return (code & 0x80) != 0 ? -number : number;
}

// Of all finite codes the one nearest to a number, the even one of two that are as near; found by
// asking each.
std::uint8_t nearest_of_all(double value, const Format& of) {
  const double most = number_of(static_cast<std::uint8_t>(of.first_special - 1), of);
  const double size = std::min(std::abs(value), most);
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int code = 0; code < of.first_special; ++code) {
    const double off = std::abs(size - number_of(static_cast<std::uint8_t>(code), of));
    if (off < least || (off == least && code % 2 == 0)) {
      least = off;
      best = code;
    }
  }
  return static_cast<std::uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

float bf16_number(std::uint32_t bits) {
  return to_float(Bf16{static_cast<std::uint16_t>(bits)});
}

TEST(E4m3, EveryCodeHasTheNumberOfItsLayout) {
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    if ((code & 0x7f) >= kE4m3.first_special) {
      EXPECT_TRUE(std::isnan(to_float(E4m3{bits}))) << code;
    } else {
      EXPECT_EQ(to_float(E4m3{bits}), number_of(bits, kE4m3)) << code;
      EXPECT_EQ(std::signbit(to_float(E4m3{bits})), code >= 128) << code;
    }
  }
}

TEST(E5m2, EveryCodeHasTheNumberOfItsLayout) {
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    const int magnitude = code & 0x7f;
    if (magnitude > kE5m2.first_special) {
      EXPECT_TRUE(std::isnan(to_float(E5m2{bits}))) << code;
    } else if (magnitude == kE5m2.first_special) {
      EXPECT_EQ(to_float(E5m2{bits}), code >= 128 ? -kInfinite : kInfinite);
    } else {
      EXPECT_EQ(to_float(E5m2{bits}), number_of(bits, kE5m2)) << code;
    }
  }
}

TEST(E4m3, EveryBf16NumberBecomesTheNearestCode) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_number(bits);
    if (std::isnan(value)) {
      EXPECT_EQ(round_to<E4m3>(value).bits, 0x7f);
    } else {
      ASSERT_EQ(round_to<E4m3>(value).bits, nearest_of_all(value, kE4m3)) << value;
    }
  }
}

TEST(E5m2, EveryBf16NumberBecomesTheNearestCode) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_number(bits);
    if (std::isnan(value)) {
      EXPECT_EQ(round_to<E5m2>(value).bits, 0x7f);
    } else {
      ASSERT_EQ(round_to<E5m2>(value).bits, nearest_of_all(value, kE5m2)) << value;
    }
  }
}

// A bf16 number has too few digits to lie just beside the middle of two codes; a float has them.
TEST(E4m3, FloatsBesideTheMiddleOfTwoCodesGoToTheNearerOne) {
  for (int code = 0; code + 1 < kE4m3.first_special; ++code) {
    const float low = to_float(E4m3{static_cast<std::uint8_t>(code)});
    const float high = to_float(E4m3{static_cast<std::uint8_t>(code + 1)});
    const float middle = (low + high) / 2;
    EXPECT_EQ(round_to<E4m3>(middle).bits, code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(round_to<E4m3>(std::nextafter(middle, 0.0F)).bits, code);
    EXPECT_EQ(round_to<E4m3>(std::nextafter(middle, kInfinite)).bits, code + 1);
    EXPECT_EQ(round_to<E5m2>(-low).bits, nearest_of_all(-low, kE5m2));
  }
}

TEST(E8m0, EveryCodeIsAPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(to_float(E8m0{static_cast<std::uint8_t>(code)}), std::ldexp(1.0, code - 127));
  }
  EXPECT_TRUE(std::isnan(to_float(E8m0{255})));
}

std::vector<float> magnitudes() {
  std::vector<float> all{0,      0x1p-149F, 0x1p-127F, 0x1.8p-127F, 0x1p-126F, 0x1p-120F,  447.9F,
                         448.0F, 448.1F,    449.0F,    896.0F,      1.0F,      0x1.fep127F};
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0x7fffffffU);
    if (std::isfinite(value)) all.push_back(value);
  }
  return all;
}

TEST(BlockScale, IsTheGreatestPowerOfTwoThatKeepsTheBlockInRange) {
  for (const float largest : magnitudes()) {
    const BlockScale scale = scale_of_block(largest);
    int exponent = 0;
    EXPECT_EQ(std::frexp(scale.up, &exponent), 0.5F) << largest;
    EXPECT_EQ(scale.up * scale.down, 1) << largest;
    if (largest == 0) continue;
    EXPECT_LE(static_cast<double>(largest) * scale.up, 448) << largest;
    if (scale.up < 0x1p127F) {
      EXPECT_GT(static_cast<double>(largest) * scale.up * 2, 448) << largest;
    }
  }
  EXPECT_EQ(scale_of_block(0).up, 1);
  EXPECT_EQ(scale_of_block(kInfinite).up, 1);
}

// The share is rounded to fp32 before its exponent is taken, so just above 448 * 2^k the block's
// largest number may be a little beyond the range; it becomes the largest code.
TEST(Mxfp8Scale, IsTheLeastPowerOfTwoThatKeepsTheBlockInRange) {
  for (const float largest : magnitudes()) {
    const BlockScale scale = scale_of(exponent_of_block(largest));
    EXPECT_EQ(scale.up * scale.down, 1) << largest;
    if (largest == 0) continue;
    EXPECT_LE(static_cast<double>(largest) * scale.up, 448 * (1 + 0x1p-23)) << largest;
    if (scale.down > 0x1p-127F) {
      EXPECT_GT(static_cast<double>(largest) * scale.up * 2, 448 * (1 - 0x1p-23)) << largest;
    }
  }
  EXPECT_EQ(exponent_of_block(0).bits, 0);
  EXPECT_EQ(exponent_of_block(448).bits, 127);
  EXPECT_EQ(exponent_of_block(449).bits, 128);
  EXPECT_EQ(exponent_of_block(kInfinite).bits, 0xfe);
}

TEST(Codes, TimesTheirScaleAreBf16NumbersExactly) {
  for (int power = -100; power <= 100; ++power) {
    for (int code = 0; code < 0x7f; ++code) {
      const float value = to_float(E4m3{static_cast<std::uint8_t>(code)}) * std::ldexp(1.0F, power);
      EXPECT_EQ(to_float(round_to<Bf16>(value)), value);
    }
  }
  EXPECT_TRUE(std::isnan(to_float(round_to<E4m3>(kNoNumber))));
}

}  // namespace
}  // namespace capo::run
