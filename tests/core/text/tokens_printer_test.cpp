#include "core/text/order_text.h"
#include "schedules/catalogue.h"
#include "tests/core/graph/order_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::read_schedule;

std::string tokens(const std::string& order) {
  const auto text = print_tokens(read_schedule(order));
  return text ? *text : text.error().reason;
}

TEST(TokensPrinter, OneChunkARankHasNoChunkInItsTokens) {
  EXPECT_EQ(tokens("ranks 2\nplacement loop\nrank 0: F1.0 B1.0 W1.0\nrank 1: F1.0 B1.0\n"),
            "F0 B0 W0\nF0 BW0\n");
}

TEST(TokensPrinter, ChunksCountFromZero) {
  EXPECT_EQ(tokens("ranks 1\nrank 0: F1.0 F2.0 B2.0 B1.0\n"), "F0.0 F0.1 BW0.1 BW0.0\n");
}

TEST(TokensPrinter, ACompositeIsJoinedAndIdleSlotsAreLeftOut) {
  EXPECT_EQ(tokens("ranks 1\nrank 0: F1.0 . (F1.1 B1.0) B1.1\n"), "F0 F1&BW0 BW1\n");
}

TEST(TokensPrinter, AChunkThatSplitsSomeMicrobatchesHasBothKinds) {
  EXPECT_EQ(tokens("ranks 1\nrank 0: F1.0 F1.1 B1.0 I1.1 W1.1\n"), "F0 F1 BW0 B1 W1\n");
}

TEST(TokensPrinter, WhatComputesNothingHasNoToken) {
  EXPECT_EQ(tokens("ranks 1\nrank 0: F1.0 B1.0 reduce1\n"),
            "tokens have no notation for what computes nothing");
}

}  // namespace
}  // namespace capo
