#include "core/order/fuse_weights.h"

#include "core/text/order_text.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

using testing_support::check_text;

const std::string kHead = "capo 1\nranks 1\nmicrobatches 4\nrank 0: ";
const std::string kPasses = "F1.0 F1.1 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3 ";

// The order behind the forwards and backwards once it is fused.
std::string fused(const std::string& order, std::int32_t most) {
  Schedule schedule = check_text(kHead + kPasses + order + "\n").input.schedule;
  fuse_weights(schedule, most);
  const std::string printed = print_order_file(schedule);
  const std::size_t begin = printed.find(kPasses);
  if (begin == std::string::npos) return printed;
  return printed.substr(begin + kPasses.size(), printed.find('\n', begin) - begin - kPasses.size());
}

TEST(FuseWeights, OneInACallChangesNothing) {
  EXPECT_EQ(fused("W1.0 W1.1 W1.2 W1.3", 1), "W1.0 W1.1 W1.2 W1.3");
}

TEST(FuseWeights, ACallTakesAsManyAsItMay) {
  EXPECT_EQ(fused("W1.0 W1.1 W1.2 W1.3", 2), "(W1.0 W1.1) (W1.2 W1.3)");
  EXPECT_EQ(fused("W1.0 W1.1 W1.2 W1.3", 3), "(W1.0 W1.1 W1.2) W1.3");
}

TEST(FuseWeights, ACallTakesNoMoreThanThereAre) {
  EXPECT_EQ(fused("W1.0 W1.1 W1.2 W1.3", 4), "(W1.0 W1.1 W1.2 W1.3)");
  EXPECT_EQ(fused("W1.0 W1.1 W1.2 W1.3", kMostFusedWeights), "(W1.0 W1.1 W1.2 W1.3)");
}

TEST(FuseWeights, ACallKeepsTheOrderOfItsMicrobatches) {
  EXPECT_EQ(fused("W1.3 W1.1 W1.0 W1.2", 4), "(W1.3 W1.1 W1.0 W1.2)");
}

TEST(FuseWeights, WhatComputesPartsThem) {
  EXPECT_EQ(fused("W1.0 W1.1 F2.0 W1.2 W1.3", 4), "(W1.0 W1.1) F2.0 (W1.2 W1.3)");
  EXPECT_EQ(fused("W1.0 . W1.1 reduce1 W1.2", 4), "W1.0 . W1.1 reduce1 W1.2");
}

TEST(FuseWeights, AResetPartsThem) {
  EXPECT_EQ(fused("W1.0 W1.1 reset1.0 W1.2 W1.3 reset", 4),
            "(W1.0 W1.1) reset1.0 (W1.2 W1.3) reset");
  EXPECT_EQ(fused("W1.0 reset1.0 W1.1 W1.2", 4), "W1.0 reset1.0 (W1.1 W1.2)");
}

TEST(FuseWeights, AnotherChunkPartsThem) {
  EXPECT_EQ(fused("W1.0 W2.0 W1.1 W1.2", 4), "W1.0 W2.0 (W1.1 W1.2)");
}

TEST(FuseWeights, TransfersBetweenThemComeBeforeTheCall) {
  EXPECT_EQ(fused("W1.0 send-B1.3 W1.1 recv-B1.2", 4), "send-B1.3 (W1.0 W1.1) recv-B1.2");
  EXPECT_EQ(fused("W1.0 wait-send-B1.3 W1.1 W1.2", 4), "wait-send-B1.3 (W1.0 W1.1 W1.2)");
}

TEST(FuseWeights, CompositesStayAsTheyAre) {
  EXPECT_EQ(fused("W1.0 (W1.1 F2.0) W1.2 W1.3", 4), "W1.0 (W1.1 F2.0) (W1.2 W1.3)");
}

TEST(FuseWeights, CallsAreCountedOverAllOrders) {
  Schedule schedule = check_text(
                          "capo 1\nranks 2\nrank 0: F1.0 F1.1 B1.0 B1.1 W1.0 W1.1\n"
                          "rank 0 replay: F1.0 F1.1 B1.0 B1.1 W1.1 W1.0\n"
                          "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n")
                          .input.schedule;
  const FusedWeights counted = fuse_weights(schedule, 2);
  EXPECT_EQ(counted.calls, 2);
  EXPECT_EQ(counted.gradients, 4);
  EXPECT_TRUE(has_composites(schedule));
}

}  // namespace
}  // namespace capo
