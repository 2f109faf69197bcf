#include <capo/testing/generators/te_capturable_order.h>

#include <capo/testing/generators/sound_order.h>
#include <capo/testing/oracle_question.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace capo::testing {
namespace {

bool te_accepts(const TeOrder& order) {
  return oracle::transformer_engine({.order = oracle_order(order.list),
                                     .layers = oracle_layers(order.layers, order.list),
                                     .need_wgrad = order.delays})
      .accepts;
}

TEST(TeCapturableOrder, IsSoundAndCapturableToTheOracle) {
  for (const TeOrder& order : sample(te_capturable_order(), 500)) {
    EXPECT_TRUE(oracle::sound(oracle_order(order.list), order.delays,
                              oracle_layers(order.layers, order.list)))
        << order.text();
    EXPECT_TRUE(te_accepts(order)) << order.text();
  }
}

TEST(TeCapturableOrder, HasEveryShapeThatItClaims) {
  std::set<std::int32_t> chunks;
  std::set<std::int32_t> microbatches;
  std::set<std::int64_t> layers;
  std::size_t delaying = 0;
  std::size_t all = 0;
  for (const TeOrder& order : sample(te_capturable_order(), 500)) {
    chunks.insert(order.chunks());
    microbatches.insert(order.microbatches);
    layers.insert(order.layers.values.begin(), order.layers.values.end());
    delaying +=
        static_cast<std::size_t>(std::count(order.delays.begin(), order.delays.end(), true));
    all += order.delays.size();
  }
  EXPECT_EQ(chunks, (std::set<std::int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(microbatches, (std::set<std::int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(layers, (std::set<std::int64_t>{1, 2, 3}));
  EXPECT_GT(delaying, all / 3);
  EXPECT_LT(delaying, all * 2 / 3);
}

// Of one chunk with two microbatches that delays there are three capturable orders.
TEST(TeCapturableOrder, ReachesEveryOrderOfASmallShape) {
  std::set<std::string> seen;
  for (const TeOrder& order : sample(te_capturable_order(), 2000)) {
    if (order.microbatches == 2 && order.delays == std::vector<bool>{true})
      seen.insert(order.text());
  }
  EXPECT_EQ(seen,
            (std::set<std::string>{"[1, -1, -1.5, 1, -1, -1.5]\n", "[1, -1, 1, -1.5, -1, -1.5]\n",
                                   "[1, 1, -1, -1.5, -1, -1.5]\n"}));
}

TEST(TeCapturableOrder, ShrinksThroughCapturableOrdersToTheSmallest) {
  for (const auto& shrinkable : sample_shrinkables(te_capturable_order(), 50)) {
    const std::vector<TeOrder> path = shrink_path(shrinkable);
    for (const TeOrder& order : path) EXPECT_TRUE(te_accepts(order)) << order.text();
    EXPECT_EQ(path.back().text(), "[1, -1]\n");
  }
}

TEST(TeCapturableOrder, OffersOnlyCapturableOrdersInStead) {
  for (const TeOrder& order : sample(te_capturable_order(), 100)) {
    for (const TeOrder& smaller : simpler(order))
      EXPECT_TRUE(te_accepts(smaller)) << smaller.text();
  }
}

}  // namespace
}  // namespace capo::testing
