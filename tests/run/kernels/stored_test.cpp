// Numbers, sizes of groups and stored bytes of run/setup/values.h.
//
// Drawn numbers must depend on seed, stream and index alone, stay in their range, and be spread
// evenly. Sizes of groups have what holds of every kind, and what makes each the kind that it is.
// Stored numbers are compared with bytes written by hand. Counts are those of fixed seeds, so that
// a bound that holds once holds always.

#include "run/setup/values.h"

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

using Sizes = std::vector<std::int64_t>;

constexpr std::array kSizeKinds{SizeKind::Balanced, SizeKind::Zipf, SizeKind::Random};
constexpr std::array<std::int64_t, 9> kRows{0, 1, 2, 7, 8, 64, 100, 1000, 4099};

std::int64_t empty(const Sizes& sizes) {
  return std::count(sizes.begin(), sizes.end(), 0);
}

TEST(GroupSizes, OfEveryKindTheySumUpToTheRowsAndNoneIsNegative) {
  for (const SizeKind kind : kSizeKinds) {
    for (std::int64_t groups = 1; groups <= 70; ++groups) {
      for (const std::int64_t rows : kRows) {
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          const Sizes sizes = group_sizes(kind, groups, rows, {.seed = seed, .stream = 1});
          ASSERT_EQ(sizes.size(), static_cast<std::size_t>(groups));
          ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), rows);
          ASSERT_GE(*std::min_element(sizes.begin(), sizes.end()), 0);
        }
      }
    }
  }
}

TEST(GroupSizes, BalancedOnesDifferByAtMostOne) {
  for (std::int64_t groups = 1; groups <= 70; ++groups) {
    for (const std::int64_t rows : kRows) {
      const Sizes sizes = group_sizes(SizeKind::Balanced, groups, rows, {});
      const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*most - *least, 1) << groups << " groups of " << rows;
    }
  }
  EXPECT_EQ(group_sizes(SizeKind::Balanced, 4, 10, {}), (Sizes{3, 3, 2, 2}));
}

// With rows for all: an eighth gets none, whoever else is there gets some.
TEST(GroupSizes, ZipfLeavesAnEighthOfTheGroupsEmpty) {
  for (std::int64_t groups = 1; groups <= 70; ++groups) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Sizes sizes = group_sizes(SizeKind::Zipf, groups, 100'000, {.seed = seed});
      EXPECT_EQ(empty(sizes), groups / 8) << groups;
    }
  }
}

// Seven of eight groups are served; 1 + 1/2 + ... + 1/7 is 2.5929, so the second of 10,000 rows
// gets 1928, the third 1285, and the first 3856 and what rounding left.
TEST(GroupSizes, ZipfGivesTheKthGroupAKthOfTheFirst) {
  Sizes sizes = group_sizes(SizeKind::Zipf, 8, 10'000, {.seed = 2});
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  const Sizes shares{3856, 1928, 1285, 964, 771, 642, 550, 0};
  EXPECT_EQ(sizes[0], 10'000 - std::accumulate(shares.begin() + 1, shares.end(), 0));
  EXPECT_NEAR(static_cast<double>(sizes[0]), static_cast<double>(shares[0]), 7);
  EXPECT_EQ(Sizes(sizes.begin() + 1, sizes.end()), Sizes(shares.begin() + 1, shares.end()));
}

// Any group may be the first of the list, and any may be left out.
TEST(GroupSizes, ZipfShufflesWhoGetsTheMost) {
  std::set<std::ptrdiff_t> largest;
  std::set<std::ptrdiff_t> left_out;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Sizes sizes = group_sizes(SizeKind::Zipf, 8, 1000, {.seed = seed});
    largest.insert(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    left_out.insert(std::find(sizes.begin(), sizes.end(), 0) - sizes.begin());
  }
  EXPECT_EQ(largest.size(), 8U);
  EXPECT_EQ(left_out.size(), 8U);
}

// 70,000 rows to 70 groups: 1000 each, give or take 31.
TEST(GroupSizes, RandomRowsChooseEvenlyAndNotTheSame) {
  const Sizes sizes = group_sizes(SizeKind::Random, 70, 70'000, {.seed = 4});
  for (const std::int64_t size : sizes) EXPECT_NEAR(static_cast<double>(size), 1000, 4 * 31);
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  EXPECT_GT(*most - *least, 31);
}

// About 64/e of 64 groups with a row each on average get none.
TEST(GroupSizes, RandomGroupsMayStayEmpty) {
  const Sizes sizes = group_sizes(SizeKind::Random, 64, 64, {.seed = 5});
  EXPECT_GT(empty(sizes), 12);
  EXPECT_LT(empty(sizes), 36);
}

TEST(GroupSizes, SameDrawsGiveSameSizesAndOthersOthers) {
  for (const SizeKind kind : {SizeKind::Zipf, SizeKind::Random}) {
    const Draw draw{.seed = 6, .stream = 7};
    EXPECT_EQ(group_sizes(kind, 16, 500, draw), group_sizes(kind, 16, 500, draw));
    EXPECT_NE(group_sizes(kind, 16, 500, draw),
              group_sizes(kind, 16, 500, {.seed = 7, .stream = 7}));
    EXPECT_NE(group_sizes(kind, 16, 500, draw),
              group_sizes(kind, 16, 500, {.seed = 6, .stream = 8}));
  }
}

TEST(GroupSizes, KindsHaveTheirNames) {
  EXPECT_EQ(name_of(SizeKind::Balanced), "balanced");
  EXPECT_EQ(name_of(SizeKind::Zipf), "zipf");
  EXPECT_EQ(name_of(SizeKind::Random), "random");
  for (const SizeKind kind : kSizeKinds) EXPECT_EQ(size_kind_named(name_of(kind)), kind);
  for (const char* word : {"", "Zipf", "randomly", "even"}) {
    EXPECT_EQ(size_kind_named(word), std::nullopt) << word;
  }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
  EXPECT_EQ(there_and_back(70000, DataType::Fp16), kInfinity);
  EXPECT_EQ(there_and_back(1 + 0x1p-23F, DataType::Fp32), 1 + 0x1p-23F);
}

TEST(Stored, SignsInfinitiesAndNansStay) {
  const std::array values{-0.0F, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    const std::vector<float> back = from_stored(to_stored(values, type), type);
    ASSERT_EQ(back.size(), 4U);
    EXPECT_TRUE(back[0] == 0 && std::signbit(back[0]));
    EXPECT_EQ(back[1], kInfinity);
    EXPECT_EQ(back[2], -kInfinity);
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
