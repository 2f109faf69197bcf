// The oracle itself: it names what is missing, what is out of turn, and a deadlock.

#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

constexpr Move kForward = {.kind = Kind::Forward};
constexpr Move kInput = {.kind = Kind::BackwardInput};
constexpr Move kWeight = {.kind = Kind::BackwardWeight};
constexpr Move kWhole = {.kind = Kind::Backward};

std::optional<std::string> of_one_rank(const std::vector<Move>& order) {
  return broken_law({order}, loop({}));
}

TEST(OrderLaws, AMicrobatchIsAForwardAndABackwardInOnePieceOrTwo) {
  EXPECT_EQ(of_one_rank({kForward, kWhole}), std::nullopt);
  EXPECT_EQ(of_one_rank({kForward, kInput, kWeight}), std::nullopt);
  EXPECT_EQ(of_one_rank({kForward, kInput}), "rank 0: chunk 1, microbatch 0: FB");
  EXPECT_EQ(of_one_rank({}), "rank 0: 0 of 1 microbatches");
  EXPECT_EQ(of_one_rank({kWhole, kForward}), "rank 0: BW0.0 after nothing");
  EXPECT_EQ(of_one_rank({kForward, kWeight, kInput}), "rank 0: W0.0 after F");
  EXPECT_EQ(of_one_rank({kForward, kWhole, kWeight}), "rank 0: W0.0 after FBW");
  EXPECT_EQ(of_one_rank({kForward, kForward, kWhole}), "rank 0: F0.0 after F");
  EXPECT_EQ(of_one_rank({{.chunk = 2}}), "rank 0: no chunk F0.1");
  EXPECT_EQ(of_one_rank({{.microbatch = 1}}), "rank 0: no microbatch F1.0");
}

TEST(OrderLaws, RanksThatWaitForEachOtherAreADeadlock) {
  const Setting setting = {.ranks = 2, .microbatches = 2};
  const std::vector<Move> in_turn = {
      kForward, kWhole, {.microbatch = 1}, {.kind = Kind::Backward, .microbatch = 1}};
  const std::vector<Move> second_first = {
      {.microbatch = 1}, kForward, kWhole, {.kind = Kind::Backward, .microbatch = 1}};
  EXPECT_EQ(broken_law({in_turn, in_turn}, loop(setting)), std::nullopt);
  EXPECT_EQ(broken_law({in_turn, second_first}, loop(setting)), "deadlock");
}

TEST(OrderLaws, WhatRunsTogetherStartsTogether) {
  Move joined = kWhole;
  joined.joins = true;
  EXPECT_EQ(text({kForward, joined}), "F0.0&BW0.0");
  EXPECT_EQ(broken_law({{kForward, joined}}, loop({})), "deadlock");  // the one needs the other
}

}  // namespace
}  // namespace capo::schedules
