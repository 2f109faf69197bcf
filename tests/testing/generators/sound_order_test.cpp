#include <capo/testing/generators/sound_order.h>

#include <capo/testing/oracle_question.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

// Of one chunk with two microbatches that delays there are five sound orders.
TEST(SoundOrder, ReachesEveryOrderOfASmallShape) {
  std::set<std::string> seen;
  for (const TeOrder& order : sample(sound_order(), 2000)) {
    if (order.microbatches == 2 && order.delays == std::vector<bool>{true})
      seen.insert(order.text());
  }
  EXPECT_EQ(seen.size(), 5u);
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
