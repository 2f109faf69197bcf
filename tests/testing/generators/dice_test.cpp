#include <capo/testing/generators/dice.h>

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace capo::testing {
namespace {

TEST(Dice, GivesTheSameNumbersFromTheSameRandom) {
  Dice a{rc::Random(7)};
  Dice b{rc::Random(7)};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.below(1000), b.below(1000));
}

TEST(Dice, BetweenReachesBothEndsAndNoFurther) {
  Dice dice{rc::Random(7)};
  std::set<std::int32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(dice.between(-2, 3));
  EXPECT_EQ(seen, (std::set<std::int32_t>{-2, -1, 0, 1, 2, 3}));
}

TEST(Dice, OneInFourIsTrueAboutOnceInFour) {
  Dice dice{rc::Random(7)};
  int hits = 0;
  for (int i = 0; i < 4000; ++i) hits += dice.one_in(4) ? 1 : 0;
  EXPECT_NEAR(hits, 1000, 100);
}

TEST(Dice, PickReachesEveryElement) {
  Dice dice{rc::Random(7)};
  constexpr std::array kLetters{'a', 'b', 'c'};
  std::set<char> seen;
  for (int i = 0; i < 100; ++i) seen.insert(dice.pick(std::span<const char>(kLetters)));
  EXPECT_EQ(seen.size(), kLetters.size());
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
