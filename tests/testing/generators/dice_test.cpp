#include "testing/generators/dice.h"

#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace capo::testing {
namespace {

TEST(Dice, GivesTheSameNumbersFromTheSameRandom) {
  Dice a{rc::Random(7)};
  Dice b{rc::Random(7)};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.below(1000), b.below(1000));
}

TEST(Dice, BetweenGivesBothEndsAndAllBetweenThemEquallyOften) {
  Dice dice{rc::Random(7)};
  std::vector<std::int32_t> drawn;
  for (int i = 0; i < 4000; ++i) drawn.push_back(dice.between(-2, 3));
  EXPECT_TRUE(are_even(drawn, numbers(-2, 3)));
}

TEST(Dice, OneInFourIsTrueOnceInFour) {
  Dice dice{rc::Random(7)};
  std::size_t hits = 0;
  for (int i = 0; i < 4000; ++i) hits += dice.one_in(4) ? 1 : 0;
  EXPECT_TRUE(is_share(hits, 4000, 1.0 / 4));
}

TEST(Dice, PickGivesEveryElementEquallyOften) {
  Dice dice{rc::Random(7)};
  constexpr std::array kLetters{'a', 'b', 'c'};
  std::vector<char> drawn;
  for (int i = 0; i < 1000; ++i) drawn.push_back(dice.pick(std::span<const char>(kLetters)));
  EXPECT_TRUE(are_even(drawn, {'a', 'b', 'c'}));
}

TEST(Generator, ShrinksByItsOwnListUntilThatIsEmpty) {
  const auto halves =
      generator([](Dice&) { return 40; },
                [](int n) { return n > 0 ? std::vector<int>{n / 2} : std::vector<int>{}; });
  auto shrinkable = halves(rc::Random(1));
  std::vector<int> path{shrinkable.value()};
  for (auto next = shrinkable.shrinks().next(); next; next = shrinkable.shrinks().next()) {
    shrinkable = *next;
    path.push_back(shrinkable.value());
  }
  EXPECT_EQ(path, (std::vector<int>{40, 20, 10, 5, 2, 1, 0}));
}

}  // namespace
}  // namespace capo::testing
