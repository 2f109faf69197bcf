#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo::testing {
namespace {

// One in two of 1000 has a deviation of 15.8, and five of them are 79.06.
TEST(IsShare, AllowsFiveDeviationsOnBothSidesAndNoMore) {
  EXPECT_FALSE(is_share(420, 1000, 1.0 / 2));
  EXPECT_TRUE(is_share(421, 1000, 1.0 / 2));
  EXPECT_TRUE(is_share(579, 1000, 1.0 / 2));
  EXPECT_FALSE(is_share(580, 1000, 1.0 / 2));
}

TEST(IsShare, TellsAChanceFromHalfAndFromTwiceAsMuch) {
  for (const double odds : {1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 6, 1.0 / 10}) {
    const auto count = static_cast<std::size_t>(6000 * odds);
    EXPECT_TRUE(is_share(count, 6000, odds)) << odds;
    EXPECT_FALSE(is_share(count / 2, 6000, odds)) << odds;
    EXPECT_FALSE(is_share(2 * count, 6000, odds)) << odds;
  }
}

TEST(IsShare, RefusesASampleThatIsTooSmallToTell) {
  EXPECT_FALSE(is_share(115, 230, 1.0 / 2));
  EXPECT_TRUE(is_share(116, 232, 1.0 / 2));
  EXPECT_FALSE(is_share(0, 0, 1.0 / 2));
}

// One in ten that are otherwise weighs as one in ten that are so.
TEST(IsShare, LooksAtTheSmallerOfAChanceAndItsOpposite) {
  for (const std::size_t of : {1000U, 1800U, 2500U}) {
    EXPECT_EQ(bool(is_share(of - of / 10, of, 9.0 / 10)), bool(is_share(of / 10, of, 1.0 / 10)));
  }
  EXPECT_FALSE(is_share(900, 1000, 9.0 / 10));
  EXPECT_TRUE(is_share(2250, 2500, 9.0 / 10));
}

TEST(AreEven, WantsEachOfThemAndNothingElse) {
  std::vector<int> drawn(400, 1);
  drawn.insert(drawn.end(), 400, 2);
  EXPECT_TRUE(are_even(drawn, {1, 2}));
  EXPECT_FALSE(are_even(drawn, {1, 3}));
  EXPECT_FALSE(are_even(drawn, {1}));
  drawn.insert(drawn.end(), 10, 3);
  EXPECT_FALSE(are_even(drawn, {1, 2})) << "each of the two is often enough";
}

TEST(AreEven, SaysWhichIsNot) {
  EXPECT_EQ(std::string(are_even(std::vector<int>(400, 1), {1, 2}).message()),
            "400 of 400, where 200 +- 50 are stated of 1");
}

TEST(Numbers, IncludeBothEnds) {
  EXPECT_EQ(numbers(-1, 2), (std::vector<int>{-1, 0, 1, 2}));
}

}  // namespace
}  // namespace capo::testing
