// Rounding to a type against tables of all of its values, and against float.
//
// Values of 16 bits are decoded here from their patterns: between two neighbours all lies nearer to
// the one or the other but their middle, which goes to the one whose pattern is even.

#include "core/base/assert.h"
#include "run/reference/layer_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace capo::run::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Narrow {
  DataType type = DataType::Bf16;
  int exponent_bits = 0;
  int fraction_bits = 0;
};

constexpr Narrow kNarrow[] = {{DataType::Bf16, 8, 7}, {DataType::Fp16, 5, 10}};

// The first pattern that is no finite value; those below it ascend, as positive values do.
int infinity_of(const Narrow& narrow) {
  return ((1 << narrow.exponent_bits) - 1) << narrow.fraction_bits;
}

// The pattern of infinity gives what would follow the largest value.
double decoded(int pattern, const Narrow& narrow) {
  const int bias = (1 << (narrow.exponent_bits - 1)) - 1;
  const int exponent = pattern >> narrow.fraction_bits;
  const int fraction = pattern & ((1 << narrow.fraction_bits) - 1);
  const int leading = exponent == 0 ? 0 : 1 << narrow.fraction_bits;
  const int power = (exponent == 0 ? 1 : exponent) - bias - narrow.fraction_bits;
  return (leading + fraction) * std::pow(2.0, power);
}

TEST(Rounded, EveryValueOfSixteenBitsStays) {
  for (const Narrow& narrow : kNarrow) {
    SCOPED_TRACE(name_of(narrow.type));
    for (int pattern = 0; pattern < infinity_of(narrow); ++pattern) {
      const double value = decoded(pattern, narrow);
      ASSERT_EQ(rounded(value, narrow.type), value);
      ASSERT_EQ(rounded(-value, narrow.type), -value);
    }
  }
}

TEST(Rounded, BetweenNeighboursItGoesToTheNearerAndFromTheMiddleToTheEven) {
  for (const Narrow& narrow : kNarrow) {
    SCOPED_TRACE(name_of(narrow.type));
    for (int pattern = 0; pattern < infinity_of(narrow); ++pattern) {
      const double low = decoded(pattern, narrow);
      const double next = decoded(pattern + 1, narrow);
      const double high = pattern + 1 == infinity_of(narrow) ? kInfinity : next;
      const double middle = low + (next - low) / 2;
      const double even = pattern % 2 == 0 ? low : high;
      ASSERT_EQ(rounded(middle, narrow.type), even);
      ASSERT_EQ(rounded(std::nextafter(middle, 0), narrow.type), low);
      ASSERT_EQ(rounded(std::nextafter(middle, kInfinity), narrow.type), high);
      ASSERT_EQ(rounded(-middle, narrow.type), -even);
    }
  }
}

TEST(Rounded, KnownValues) {
  EXPECT_EQ(rounded(0.1, DataType::Bf16), 0.10009765625);
  EXPECT_EQ(rounded(0.1, DataType::Fp16), 0.0999755859375);
  EXPECT_EQ(rounded(0.1, DataType::Fp32), 0.100000001490116119384765625);
  EXPECT_EQ(rounded(1.0 / 3, DataType::Bf16), 0.333984375);
  EXPECT_EQ(rounded(-1e6, DataType::Bf16), -999424);
  EXPECT_EQ(rounded(2049, DataType::Fp16), 2048);
  EXPECT_EQ(rounded(2051, DataType::Fp16), 2052);
  EXPECT_EQ(rounded(16'777'217, DataType::Fp32), 16'777'216);
}

TEST(Rounded, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(rounded(65519.99, DataType::Fp16), 65504);
  EXPECT_EQ(rounded(65520, DataType::Fp16), kInfinity);
  EXPECT_EQ(rounded(-65520, DataType::Fp16), -kInfinity);
  EXPECT_EQ(rounded(3.3895313892515355e38, DataType::Bf16), 3.3895313892515355e38);
  EXPECT_EQ(rounded(3.4e38, DataType::Bf16), kInfinity);
  EXPECT_EQ(rounded(3.4e38, DataType::Fp32), static_cast<double>(3.4e38F));
  EXPECT_EQ(rounded(3.41e38, DataType::Fp32), kInfinity);
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    EXPECT_EQ(rounded(std::numeric_limits<double>::max(), type), kInfinity);
    EXPECT_EQ(rounded(-kInfinity, type), -kInfinity);
    EXPECT_TRUE(std::isnan(rounded(std::nan(""), type)));
  }
}

TEST(Rounded, WhatIsTooSmallIsZeroOfItsSign) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    for (const double tiny : {0.0, std::numeric_limits<double>::denorm_min(), 1e-100}) {
      EXPECT_EQ(rounded(tiny, type), 0);
      EXPECT_FALSE(std::signbit(rounded(tiny, type)));
      EXPECT_EQ(rounded(-tiny, type), 0);
      EXPECT_TRUE(std::signbit(rounded(-tiny, type)));
    }
  }
}

TEST(Rounded, Fp32IsFloat) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> significand(-2, 2);
  std::uniform_int_distribution<int> power(-155, 126);
  for (int i = 0; i < 200'000; ++i) {
    const double value = significand(random) * std::pow(2.0, power(random));
    ASSERT_EQ(rounded(value, DataType::Fp32), static_cast<double>(static_cast<float>(value)));
    // Halfway between two floats.
    const float low = static_cast<float>(value);
    const float high = std::nextafter(low, std::numeric_limits<float>::infinity());
    const double middle = (static_cast<double>(low) + static_cast<double>(high)) / 2;
    ASSERT_EQ(rounded(middle, DataType::Fp32), static_cast<double>(static_cast<float>(middle)));
  }
}

}  // namespace
}  // namespace capo::run::reference
