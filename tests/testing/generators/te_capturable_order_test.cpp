#include "testing/generators/sound_order.h"
#include "testing/oracle_question.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

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

TEST(TeCapturableOrder, HasEveryShapeAsOftenAsItClaims) {
  const auto orders = sample(te_capturable_order(), 6000);
  EXPECT_TRUE(
      are_even(parts(orders, [](const TeOrder& order) { return order.chunks(); }), numbers(1, 4)));
  EXPECT_TRUE(are_even(parts(orders, [](const TeOrder& order) { return order.microbatches; }),
                       numbers(1, 5)));
  std::vector<bool> delays;
  std::vector<std::int64_t> free_layers;  // the first chunk's, if none delays
  for (const TeOrder& order : orders) {
    delays.insert(delays.end(), order.delays.begin(), order.delays.end());
    if (std::count(order.delays.begin(), order.delays.end(), true) == 0) {
      free_layers.push_back(order.layers.values.front());
    } else {
      EXPECT_EQ(order.layers.values, std::vector<std::int64_t>(order.delays.size(), 1));
    }
  }
  EXPECT_TRUE(are_even(delays, {false, true}));
  for (const auto& [layers, odds] :
       {std::pair(1, 4.0 / 6), std::pair(2, 1.0 / 6), std::pair(3, 1.0 / 6)}) {
    const auto count = std::count(free_layers.begin(), free_layers.end(), layers);
    EXPECT_TRUE(is_share(static_cast<std::size_t>(count), free_layers.size(), odds)) << layers;
  }
}

// After the first forward of a single chunk the next one or its backward may come.
TEST(TeCapturableOrder, TakesEachOfWhatMayComeNextEquallyOften) {
  std::vector<bool> forward;
  for (const TeOrder& order : sample(te_capturable_order(), 2000)) {
    if (order.chunks() == 1 && order.microbatches > 1)
      forward.push_back(order.list.entries[1].value > 0);
  }
  EXPECT_TRUE(are_even(forward, {false, true}));
}

// One chunk with two microbatches that delays has three capturable orders.
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
