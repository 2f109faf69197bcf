// Drawn numbers must depend on seed, stream and index alone, stay in their range, and be spread
// evenly. Counts are those of fixed seeds, so that a bound
// that holds once holds always.

#include "run/setup/values.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
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

}  // namespace
}  // namespace capo::run
