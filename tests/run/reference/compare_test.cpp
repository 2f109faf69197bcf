// Differences by hand: equal bits, distances in last places, relative errors.

#include "run/reference/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

namespace capo::run {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::int64_t kFurthest = std::numeric_limits<std::int64_t>::max();

std::optional<Difference> differ(const std::vector<float>& should, const std::vector<float>& is,
                                 DataType type = DataType::Fp32) {
  return difference(should, is, type);
}

std::int64_t ulps(float should, float is, DataType type) {
  const auto found = differ({should}, {is}, type);
  return found ? found->ulps : 0;
}

TEST(Difference, OfEqualBitsThereIsNone) {
  EXPECT_EQ(differ({}, {}), std::nullopt);
  EXPECT_EQ(differ({1, -2, 0, -0.0F, kInfinity, -kInfinity, kNan},
                   {1, -2, 0, -0.0F, kInfinity, -kInfinity, kNan}),
            std::nullopt);
}

TEST(Difference, NansOfOtherBitsDiffer) {
  const float other = std::bit_cast<float>(std::bit_cast<std::uint32_t>(kNan) | 1U);
  const auto found = differ({kNan}, {other});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->differing, 1);
}

TEST(Difference, ZerosOfOtherSignsDifferByNoDistance) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    const auto found = differ({1, 0}, {1, -0.0F}, type);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->differing, 1);
    EXPECT_EQ(found->first, 1);
    EXPECT_EQ(found->ulps, 0);
    EXPECT_EQ(found->relative_error, 0);
  }
}

TEST(Difference, SaysHowManyAndWhichIsTheFirst) {
  const auto found = differ({1, 2, 3, 4, 5}, {1, 2.5F, 3, 4.5F, 6});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->differing, 3);
  EXPECT_EQ(found->first, 1);
  EXPECT_EQ(found->should, 2);
  EXPECT_EQ(found->is, 2.5F);
}

// From 1 to 2 there are 2^7 numbers of bf16, 2^10 of fp16, 2^23 of fp32; below 1 they lie twice as
// close.
TEST(Difference, DistancesAreInLastPlacesOfTheType) {
  struct Type {
    DataType type;
    int bits;
  };
  for (const auto& [type, bits] :
       {Type{DataType::Bf16, 7}, Type{DataType::Fp16, 10}, Type{DataType::Fp32, 23}}) {
    const float place = std::ldexp(1.0F, -bits);
    EXPECT_EQ(ulps(1, 1 + place, type), 1);
    EXPECT_EQ(ulps(1, 1 - place / 2, type), 1);
    EXPECT_EQ(ulps(1 - place / 2, 1 + place, type), 2);
    EXPECT_EQ(ulps(2, 2 + 2 * place, type), 1);
    EXPECT_EQ(ulps(2, 2 - place, type), 1);
    EXPECT_EQ(ulps(1, 2, type), std::int64_t{1} << bits);
    EXPECT_EQ(ulps(-1, -1 - place, type), 1);
    EXPECT_EQ(ulps(1, 4, type), std::int64_t{2} << bits);
  }
}

TEST(Difference, TheLargestDistanceIsKept) {
  const auto found = differ({1, 1, 1}, {1 + 0x1p-7F, 1 + 0x3p-7F, 1 - 0x1p-8F}, DataType::Bf16);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ulps, 3);
}

// The smallest subnormal is one from zero, so one on either side are two apart.
TEST(Difference, DistancesGoAcrossZeroAndThroughSubnormals) {
  EXPECT_EQ(ulps(0, 0x1p-24F, DataType::Fp16), 1);
  EXPECT_EQ(ulps(-0x1p-24F, 0x1p-24F, DataType::Fp16), 2);
  EXPECT_EQ(ulps(0x1p-24F, 0x3p-24F, DataType::Fp16), 2);
  EXPECT_EQ(ulps(0x3ffp-24F, 0x1p-14F, DataType::Fp16),
            1);  // the largest of them, and what follows
  EXPECT_EQ(ulps(0x1p-14F, 0x401p-24F, DataType::Fp16), 1);
  EXPECT_EQ(ulps(0, 0x1p-14F, DataType::Fp16), 1024);
  EXPECT_EQ(ulps(0x7ffp-24F, 0x1p-13F, DataType::Fp16), 1);
  EXPECT_EQ(ulps(0, 0x1p-133F, DataType::Bf16), 1);
  EXPECT_EQ(ulps(-0x1p-133F, 0x1p-133F, DataType::Bf16), 2);
  EXPECT_EQ(ulps(0, 0x1p-126F, DataType::Bf16), 128);
  EXPECT_EQ(ulps(0, std::numeric_limits<float>::denorm_min(), DataType::Fp32), 1);
}

// Counted one by one: each number of fp16 is one from the next.
TEST(Difference, NeighboursOfFp16AreOneApartEverywhere) {
  float before = 0;
  for (int exponent = -14; exponent <= 15; ++exponent) {
    for (int step = exponent == -14 ? 1 : 1024; step < 2048; ++step) {
      const float value = std::ldexp(static_cast<float>(step), exponent - 10);
      ASSERT_EQ(ulps(before, value, DataType::Fp16), 1) << value;
      ASSERT_EQ(ulps(-before, -value, DataType::Fp16), 1) << value;
      before = value;
    }
  }
  EXPECT_EQ(before, 65504);
  EXPECT_EQ(ulps(before, kInfinity, DataType::Fp16), 1);
}

TEST(Difference, InfinityIsTheNextOneBehindTheLargest) {
  EXPECT_EQ(ulps(std::numeric_limits<float>::max(), kInfinity, DataType::Fp32), 1);
  EXPECT_EQ(ulps(0x1.fep127F, kInfinity, DataType::Bf16), 1);
  EXPECT_EQ(ulps(-65504, -kInfinity, DataType::Fp16), 1);
}

TEST(Difference, OfANanTheDistanceIsTheLargestThereIs) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    EXPECT_EQ(ulps(1, kNan, type), kFurthest);
    EXPECT_EQ(ulps(kNan, 1, type), kFurthest);
  }
}

// |(0, 1, 0)| / |(3, 4, 12)| = 1/13.
TEST(Difference, TheRelativeErrorIsOfTheWholeTensor) {
  const auto found = differ({3, 4, 12}, {3, 5, 12});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->relative_error, 1.0 / 13);
}

TEST(Difference, TheRelativeErrorIsInfiniteWithANanOrFromZero) {
  EXPECT_EQ(differ({1, 2}, {1, kNan})->relative_error, kInfinite);
  EXPECT_EQ(differ({1, kNan}, {1, 2})->relative_error, kInfinite);
  EXPECT_EQ(differ({1, 2}, {1, kInfinity})->relative_error, kInfinite);
  EXPECT_EQ(differ({0, 0}, {0, 1})->relative_error, kInfinite);
}

TEST(RelativeError, IsTheErrorsNormOverTheNorm) {
  const std::vector<double> should{3, 4};
  EXPECT_DOUBLE_EQ(relative_error(should, std::array{3.0F, 4.5F}), 0.1);
  EXPECT_DOUBLE_EQ(relative_error(should, std::array{6.0F, 8.0F}), 1);
  EXPECT_DOUBLE_EQ(relative_error(should, std::array{0.0F, 8.0F}), 1);
  EXPECT_EQ(relative_error(should, std::array{3.0F, 4.0F}), 0);
}

TEST(RelativeError, IsZeroOfZerosAndInfiniteOfWhatShouldBeZero) {
  const std::vector<double> zeros{0, 0};
  EXPECT_EQ(relative_error(zeros, std::array{0.0F, -0.0F}), 0);
  EXPECT_EQ(relative_error(zeros, std::array{0.0F, 0x1p-140F}), kInfinite);
  EXPECT_EQ(relative_error({}, {}), 0);
}

TEST(RelativeError, IsInfiniteWithANan) {
  const std::vector<double> should{3, 4};
  EXPECT_EQ(relative_error(should, std::array{3.0F, kNan}), kInfinite);
  EXPECT_EQ(relative_error(should, std::array{3.0F, kInfinity}), kInfinite);
}

// Both hold it, and at the same place: what is wrong is the other element alone.
TEST(Difference, ANanThatBothHoldSaysNothingAboutTheOthers) {
  const std::vector<float> should{3, kNan, 4};
  const std::vector<float> is{3, kNan, 5};
  const auto found = difference(should, is, DataType::Fp32);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->differing, 1);
  EXPECT_DOUBLE_EQ(found->relative_error, 0.2);
}

}  // namespace
}  // namespace capo::run
