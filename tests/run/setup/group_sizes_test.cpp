// Sizes of groups have what holds of every kind, and what makes each the kind that it is. Counts
// are those of fixed seeds, so that a bound that holds once holds always.

#include "run/setup/group_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

namespace capo::run {
namespace {

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

}  // namespace
}  // namespace capo::run
