#include "testing/oracle/exchanges.h"

#include <gtest/gtest.h>

namespace capo::oracle {
namespace {

using enum OfTokens;
using Places = std::vector<std::size_t>;

TEST(ExchangesOracle, HasNothingToSayWhereTokensAreBackInTime) {
  EXPECT_EQ(exchanged_out_of_place({}), Places{});
  EXPECT_EQ(exchanged_out_of_place({Forward, OfForward, OfForward, Backward}), Places{});
  EXPECT_EQ(exchanged_out_of_place({Forward, OfBackward, OfBackward, Backward}), Places{});
  EXPECT_EQ(exchanged_out_of_place({Forward, OfForward, Backward, OfBackward}), Places{});
}

TEST(ExchangesOracle, LetsExpertsComputeOnBothWays) {
  EXPECT_EQ(
      exchanged_out_of_place({OfForward, Forward, OfForward, OfBackward, Backward, OfBackward}),
      Places{});
  EXPECT_EQ(exchanged_out_of_place({OfForward, Forward, OfForward, Backward}), Places{0});
  EXPECT_EQ(
      exchanged_out_of_place({OfForward, Forward, OfForward, OfBackward, OfBackward, Backward}),
      Places{0});
}

TEST(ExchangesOracle, SeesWhatComesBeforeItsForward) {
  EXPECT_EQ(exchanged_out_of_place({OfForward, OfBackward, Forward, Backward}), (Places{0, 1}));
}

TEST(ExchangesOracle, SeesAForwardsExchangeBehindWhatNeedsIt) {
  EXPECT_EQ(exchanged_out_of_place({Forward, Backward, OfForward}), Places{2});
  EXPECT_EQ(exchanged_out_of_place({Forward, OfBackward, OfForward, Backward}), Places{2});
}

TEST(ExchangesOracle, SeesABackwardBetweenItsExchanges) {
  EXPECT_EQ(exchanged_out_of_place({Forward, OfBackward, Backward, OfBackward}), Places{3});
}

}  // namespace
}  // namespace capo::oracle
