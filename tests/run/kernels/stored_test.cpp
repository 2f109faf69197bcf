// Drawn numbers and stored bytes.
//
// Drawn numbers must depend on seed, stream and index alone, stay in their range, and be spread
// evenly. Stored numbers are compared with bytes written by hand. Counts are those of fixed seeds,
// so that a bound that holds once holds always.

#include "run/kernels/stored.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace capo::run {
namespace {

constexpr std::uint64_t kCount = 100'000;

TEST(Draw, WhatIsDrawnDoesNotDependOnWhatWasAskedBefore) {
  const Draw draw{.seed = 3, .stream = 4};
  std::vector<std::uint64_t> ascending;
  for (std::uint64_t i = 0; i < 1000; ++i) ascending.push_back(draw.bits(i));
  for (std::uint64_t i = 1000; i-- > 0;) {
    EXPECT_EQ(draw.bits(i), ascending[i]) << i;
    EXPECT_EQ((Draw{.seed = 3, .stream = 4}.bits(i)), ascending[i]) << i;
  }
}

TEST(Draw, SeedsStreamsAndIndicesThatDifferGiveOtherNumbers) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t stream = 0; stream < 20; ++stream) {
      for (std::uint64_t i = 0; i < 20; ++i) {
        seen.insert(Draw{.seed = seed, .stream = stream}.bits(i));
      }
    }
  }
  EXPECT_EQ(seen.size(), 8000U);
}

// Streams are numbered in the upper bits as well: a replay's number stands at bit 40.
TEST(Draw, EveryBitOfSeedStreamAndIndexCounts) {
  std::set<std::uint64_t> seen{Draw{}.bits(0)};
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    seen.insert(Draw{.seed = one}.bits(0));
    seen.insert(Draw{.stream = one}.bits(0));
    seen.insert(Draw{}.bits(one));
  }
  EXPECT_EQ(seen.size(), 1U + 3 * 64);
}

// The finaliser of splitmix64 as its authors give it, three times, written once more.
TEST(Draw, ItIsTheMixOfTheSeedThenOfTheStreamThenOfTheIndex) {
  const auto mix = [](std::uint64_t z) {
    z ^= z >> 30;
    z *= 13787848793156543929U;
    z ^= z >> 27;
    z *= 10723151780598845931U;
    return z ^ (z >> 31);
  };
  constexpr std::uint64_t kGolden = 11400714819323198485U;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t of_seed = mix(7 + kGolden);
    const std::uint64_t of_stream = mix(of_seed ^ (9 + kGolden));
    EXPECT_EQ((Draw{.seed = 7, .stream = 9}.bits(i)), mix(of_stream ^ (i + kGolden))) << i;
  }
}

TEST(Draw, AUnitIsAMultipleOfTwoToTheMinus24BelowOne) {
  const Draw draw{.seed = 1, .stream = 2};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double value = draw.unit(i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ASSERT_EQ(value * 0x1p24, std::floor(value * 0x1p24));
    // So that it is exact as a float, and the same on a device.
    ASSERT_EQ(static_cast<double>(static_cast<float>(value)), value);
  }
}

TEST(Draw, AroundZeroIsFromMinusOneToBelowOne) {
  const Draw draw{.seed = 1, .stream = 3};
  double least = 0;
  double most = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double value = draw.around_zero(i);
    ASSERT_GE(value, -1.0);
    ASSERT_LT(value, 1.0);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_LT(least, -0.999);
  EXPECT_GT(most, 0.999);
}

TEST(Draw, BelowStaysBelowAndReachesAll) {
  const Draw draw{.seed = 5, .stream = 6};
  for (std::uint64_t count = 1; count <= 70; ++count) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 2000; ++i) seen.insert(draw.below(i, count));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.begin(), 0U);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
}

TEST(Draw, BelowTakesTheLargestCountThatItPromises) {
  const Draw draw{.seed = 5, .stream = 7};
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 32;
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t value = draw.below(i, kLargest);
    ASSERT_LT(value, kLargest);
    most = std::max(most, value);
  }
  EXPECT_GT(most, kLargest / 100 * 99);
}

// Each of 16 parts gets 6250 of 100,000, give or take 77 (one standard deviation); as fair coins
// all 64 bits are set half of the time, give or take 158.
TEST(Draw, NumbersAreSpreadEvenly) {
  const Draw draw{.seed = 11, .stream = 13};
  std::array<std::int64_t, 16> units{};
  std::array<std::int64_t, 16> belows{};
  std::array<std::int64_t, 64> bits{};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ++units[static_cast<std::size_t>(draw.unit(i) * 16)];
    ++belows[draw.below(i, 16)];
    for (unsigned bit = 0; bit < 64; ++bit) bits[bit] += (draw.bits(i) >> bit) & 1U;
  }
  for (const auto& counts : {units, belows}) {
    for (const std::int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 6250, 4 * 77);
  }
  for (const std::int64_t count : bits) EXPECT_NEAR(static_cast<double>(count), 50'000, 4 * 158);
}

// Neighbouring streams at one index have nothing to do with each other, like neighbouring indices.
TEST(Draw, NeighbouringStreamsAgreeInHalfOfTheirBits) {
  std::int64_t differing = 0;
  for (std::uint64_t stream = 0; stream < 1000; ++stream) {
    differing += std::popcount(Draw{.stream = stream}.bits(0) ^ Draw{.stream = stream + 1}.bits(0));
  }
  EXPECT_NEAR(static_cast<double>(differing), 32'000, 4 * 127);
}

constexpr float kUnbounded = std::numeric_limits<float>::infinity();

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

// Little endian: 1 is 3f80 as bf16, 3c00 as fp16 and 3f800000 as fp32.
TEST(Stored, EachTypeHasItsBytes) {
  const std::array values{1.0F, -2.0F};
  EXPECT_EQ(to_stored(values, DataType::Bf16), bytes({0x80, 0x3f, 0x00, 0xc0}));
  EXPECT_EQ(to_stored(values, DataType::Fp16), bytes({0x00, 0x3c, 0x00, 0xc0}));
  EXPECT_EQ(to_stored(values, DataType::Fp32),
            bytes({0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0xc0}));
}

TEST(Stored, EachTypeIsReadFromItsBytes) {
  EXPECT_EQ(from_stored(bytes({0x80, 0x3f, 0x00, 0xc0}), DataType::Bf16),
            (std::vector{1.0F, -2.0F}));
  EXPECT_EQ(from_stored(bytes({0x00, 0x3c, 0x01, 0x00}), DataType::Fp16),
            (std::vector{1.0F, 0x1p-24F}));
  EXPECT_EQ(from_stored(bytes({0x00, 0x00, 0x80, 0x3f}), DataType::Fp32), (std::vector{1.0F}));
}

// Seven bits behind the point in bf16, ten in fp16: half a last place goes to the even one.
TEST(Stored, NumbersAreRoundedToNearestEven) {
  const auto there_and_back = [](float value, DataType type) {
    return from_stored(to_stored(std::array{value}, type), type)[0];
  };
  EXPECT_EQ(there_and_back(1 + 0x1p-8F, DataType::Bf16), 1.0F);
  EXPECT_EQ(there_and_back(1 + 0x3p-8F, DataType::Bf16), 1 + 0x1p-6F);
  EXPECT_EQ(there_and_back(1 + 0x1p-8F + 0x1p-20F, DataType::Bf16), 1 + 0x1p-7F);
  EXPECT_EQ(there_and_back(1 + 0x1p-11F, DataType::Fp16), 1.0F);
  EXPECT_EQ(there_and_back(1 + 0x3p-11F, DataType::Fp16), 1 + 0x1p-9F);
  EXPECT_EQ(there_and_back(70000, DataType::Fp16), kUnbounded);
  EXPECT_EQ(there_and_back(1 + 0x1p-23F, DataType::Fp32), 1 + 0x1p-23F);
}

TEST(Stored, SignsInfinitiesAndNansStay) {
  const std::array values{-0.0F, kUnbounded, -kUnbounded, std::numeric_limits<float>::quiet_NaN()};
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    const std::vector<float> back = from_stored(to_stored(values, type), type);
    ASSERT_EQ(back.size(), 4U);
    EXPECT_TRUE(back[0] == 0 && std::signbit(back[0]));
    EXPECT_EQ(back[1], kUnbounded);
    EXPECT_EQ(back[2], -kUnbounded);
    EXPECT_TRUE(std::isnan(back[3]));
  }
}

// A number that was stored once changes no more.
TEST(Stored, BytesComeBackFromTheFloatsThatTheyAre) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    std::vector<std::byte> all;
    for (int bits = 0; bits < 0x10000; ++bits) {
      const bool nan = (bits & 0x7fff) > (type == DataType::Bf16 ? 0x7f80 : 0x7c00);
      if (nan) continue;
      all.push_back(static_cast<std::byte>(bits & 0xff));
      all.push_back(static_cast<std::byte>(bits >> 8));
    }
    EXPECT_EQ(to_stored(from_stored(all, type), type), all);
  }
}

// Of what is not drawn as well, which is NaN.
TEST(DrawnTensor, ASliceHasTheNumbersOfTheWhole) {
  const DrawnTensor tensor{.type = DataType::Bf16,
                           .count = 40,
                           .numbers = {.draw = {.seed = 3, .stream = 5}, .drawn = 30}};
  const std::vector<float> whole = values_of(tensor);
  for (const std::int64_t step : {1, 3, 7}) {
    const std::int64_t count = (39 - 4) / step + 1;
    const std::vector<float> some = values_of(tensor, {.first = 4, .count = count, .step = step});
    ASSERT_EQ(std::ssize(some), count);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(some[static_cast<std::size_t>(i)]),
                std::bit_cast<std::uint32_t>(whole[static_cast<std::size_t>(4 + i * step)]));
    }
  }
  EXPECT_TRUE(values_of(tensor, {.first = 40}).empty());
}

TEST(Stored, NothingIsStoredAsNothing) {
  EXPECT_TRUE(to_stored({}, DataType::Bf16).empty());
  EXPECT_TRUE(from_stored({}, DataType::Fp32).empty());
}

}  // namespace
}  // namespace capo::run
