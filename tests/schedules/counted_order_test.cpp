// Microbatches are counted by kind and chunk; weight halves are owed in the order of their inputs.

#include "schedules/counted_order.h"
#include "core/base/assert.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

TEST(CountedOrder, EveryChunkCountsItsOwnForwardsAndBackwards) {
  CountedOrder order(2);
  order.forward(1);
  order.forward(2);
  order.forward(1);
  order.backward(2);
  order.backward_input(1);
  order.backward(1);
  EXPECT_EQ(text(std::move(order).take()), "F0.0 F0.1 F1.0 BW0.1 B0.0 BW1.0");
}

TEST(CountedOrder, TheWeightHalfOwedLongestComesFirst) {
  CountedOrder order(2);
  order.backward_input(2);
  order.backward_input(1);
  order.backward_weight();
  EXPECT_TRUE(order.owes_weights());
  order.backward_weight();
  EXPECT_FALSE(order.owes_weights());
  EXPECT_EQ(text(std::move(order).take()), "B0.1 B0.0 W0.1 W0.0");
}

TEST(CountedOrder, OrTheOneOwedLongestByAChunk) {
  CountedOrder order(2);
  order.backward_input(2);
  order.backward_input(1);
  order.backward_input(1);
  order.backward_weight(1);
  order.backward_weight();
  EXPECT_EQ(text(std::move(order).take()), "B0.1 B0.0 B1.0 W0.0 W0.1");
}

TEST(CountedOrder, AnOverlapJoinsTheBackwardToTheForward) {
  CountedOrder order(2);
  order.overlap(1, 2);
  order.overlap(2, 1);
  EXPECT_EQ(text(std::move(order).take()), "F0.0&BW0.1 F0.1&BW0.0");
}

TEST(CountedOrder, WhatIsNotOwedOrNotThereIsABugOfTheGenerator) {
  CountedOrder order(1);
  EXPECT_THROW(order.backward_weight(), InternalError);
  EXPECT_THROW(order.forward(0), InternalError);
  EXPECT_THROW(order.forward(2), InternalError);
}

}  // namespace
}  // namespace capo::schedules
