#include "testing/generators/sound_order.h"

#include "testing/oracle_question.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace capo::testing {
namespace {

bool sound(const TeOrder& order) {
  return oracle::sound(oracle_order(order.list), order.delays,
                       oracle_layers(order.layers, order.list));
}

TEST(SoundOrder, IsSoundToTheOracleAndSoIsWhatItShrinksTo) {
  for (const TeOrder& order : sample(sound_order(), 300)) {
    EXPECT_TRUE(sound(order)) << order.text();
    for (const TeOrder& smaller : simpler(order)) EXPECT_TRUE(sound(smaller)) << smaller.text();
  }
}

TEST(SoundOrder, CanAndCannotBeCapturedByTe) {
  const std::vector<TeOrder> orders = sample(sound_order(), 500);
  const auto uncapturable = std::count_if(orders.begin(), orders.end(), two_outstanding);
  EXPECT_GT(uncapturable, 100);
  EXPECT_LT(uncapturable, 400);
}

// One chunk with two microbatches that delays has five sound orders.
TEST(SoundOrder, ReachesEveryOrderOfASmallShape) {
  std::set<std::string> seen;
  for (const TeOrder& order : sample(sound_order(), 2000)) {
    if (order.microbatches == 2 && order.delays == std::vector<bool>{true})
      seen.insert(order.text());
  }
  EXPECT_EQ(seen.size(), 5u);
}

// After F and B of a single chunk that delays, the next F or the W may come.
TEST(SoundOrder, TakesEachOfWhatMayComeNextEquallyOften) {
  std::vector<bool> forward;
  for (const TeOrder& order : sample(sound_order(), 6000)) {
    const auto& entries = order.list.entries;
    if (order.delays == std::vector<bool>{true} && order.microbatches > 1 && entries[1].value < 0)
      forward.push_back(entries[2].value > 0);
  }
  EXPECT_TRUE(are_even(forward, {false, true}));
}

// One microbatch becomes two, and of two chunks one is made to delay where it may not.
TEST(UncapturableOrder, HasEveryShapeAsOftenAsItClaims) {
  const auto orders = sample(te_uncapturable_order(), 6000);
  std::vector<bool> both;
  std::vector<bool> first;
  for (const TeOrder& order : orders) {
    EXPECT_EQ(order.layers.values, std::vector<std::int64_t>(order.delays.size(), 1));
    if (order.chunks() != 2) continue;
    both.push_back(order.delays[0] && order.delays[1]);
    first.push_back(order.delays[0]);
  }
  EXPECT_TRUE(are_even(both, {false, true}));
  EXPECT_TRUE(is_share(count_of(first, [](bool delays) { return delays; }), first.size(), 3.0 / 4));
  for (const std::int32_t microbatches : {2, 3, 4, 5}) {
    const auto count =
        count_of(orders, [&](const TeOrder& order) { return order.microbatches == microbatches; });
    EXPECT_TRUE(is_share(count, orders.size(), microbatches == 2 ? 2.0 / 5 : 1.0 / 5));
  }
}

TEST(UncapturableOrder, IsSoundAndRefusedByTheOracleAsADoubleCapture) {
  for (const TeOrder& order : sample(te_uncapturable_order(), 500)) {
    EXPECT_TRUE(sound(order)) << order.text();
    const auto answer =
        oracle::transformer_engine({.order = oracle_order(order.list),
                                    .layers = oracle_layers(order.layers, order.list),
                                    .need_wgrad = order.delays});
    EXPECT_EQ(answer.kind, "torch.RuntimeError") << order.text();
  }
}

TEST(UncapturableOrder, ShrinksToTheSmallestUncapturableOrder) {
  for (const auto& shrinkable : sample_shrinkables(te_uncapturable_order(), 50)) {
    EXPECT_EQ(shrink_path(shrinkable).back().text(), "[1, -1, 1, -1, -1.5, -1.5]\n");
  }
}

TEST(TwoOutstanding, IsWhereASecondBackwardPrecedesTheFirstWeightGradient) {
  TeOrder order{.microbatches = 2, .delays = {true}};
  for (const Kind kind : {Kind::Forward, Kind::Forward, Kind::Backward, Kind::BackwardWeight,
                          Kind::Backward, Kind::BackwardWeight}) {
    order.list.entries.push_back(te_entry(kind, 1));
  }
  EXPECT_FALSE(two_outstanding(order));
  std::swap(order.list.entries[3], order.list.entries[4]);
  EXPECT_TRUE(two_outstanding(order));
}

}  // namespace
}  // namespace capo::testing
