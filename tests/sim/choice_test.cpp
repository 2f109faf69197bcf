#include "sim/choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace capo {
namespace {

const std::vector<Choosable> kOrders{{.makespan = 5, .span = 1, .bubble = 0.5, .peak = 4},
                                     {.makespan = 3, .span = 2, .bubble = 0.4, .peak = 8},
                                     {.makespan = 4, .span = 3, .bubble = 0.3, .peak = 4}};

using Places = std::vector<std::size_t>;
using Marks = std::vector<bool>;

TEST(Choice, SortsByTheFigureThatIsAskedFor) {
  EXPECT_EQ(sorted(kOrders, SortBy::Given), (Places{0, 1, 2}));
  EXPECT_EQ(sorted(kOrders, SortBy::Makespan), (Places{1, 2, 0}));
  EXPECT_EQ(sorted(kOrders, SortBy::Span), (Places{0, 1, 2}));
  EXPECT_EQ(sorted(kOrders, SortBy::Bubble), (Places{2, 1, 0}));
  EXPECT_EQ(sorted(kOrders, SortBy::Peak), (Places{0, 2, 1})) << "equals stay as they came";
}

TEST(Choice, MarksWhatNoneIsBetterThan) {
  EXPECT_EQ(best(kOrders, SortBy::Given), (Marks{false, true, false}));
  EXPECT_EQ(best(kOrders, SortBy::Span), (Marks{true, false, false}));
  EXPECT_EQ(best(kOrders, SortBy::Peak), (Marks{true, false, true}));
}

TEST(Choice, WhatExceedsTheLimitComesLastAndIsNeverBest) {
  std::vector<Choosable> orders = kOrders;
  orders[1].fits = false;
  EXPECT_EQ(sorted(orders, SortBy::Makespan), (Places{2, 0, 1}));
  EXPECT_EQ(sorted(orders, SortBy::Given), (Places{0, 1, 2}));
  EXPECT_EQ(best(orders, SortBy::Makespan), (Marks{false, false, true}));
  for (Choosable& order : orders) order.fits = false;
  EXPECT_EQ(best(orders, SortBy::Makespan), (Marks{false, false, false}));
}

TEST(Choice, OneOrderIsNoChoice) {
  EXPECT_EQ(best(std::vector{kOrders.front()}, SortBy::Given), (Marks{false}));
  EXPECT_TRUE(best({}, SortBy::Given).empty());
}

TEST(Choice, RoundingMakesNothingBetter) {
  std::vector<Choosable> orders = kOrders;
  orders[0].makespan = orders[1].makespan * (1 + 1e-14);
  EXPECT_EQ(best(orders, SortBy::Makespan), (Marks{true, true, false}));
}

}  // namespace
}  // namespace capo
