#include "testing/oracle/exchanges.h"

#include <gtest/gtest.h>

namespace capo::oracle {
namespace {

using enum OfTokens;
using Places = std::vector<std::size_t>;

TEST(ExchangesOracle, HasNothingToSayWhereTokensAreBackInTime) {
  EXPECT_EQ(exchanged_out_of_place({}), Places{});
  EXPECT_EQ(exchanged_out_of_place({Forward, DispatchForward, CombineForward, Backward}), Places{});
  EXPECT_EQ(exchanged_out_of_place({Forward, CombineBackward, DispatchBackward, Backward}),
            Places{});
  EXPECT_EQ(exchanged_out_of_place({Forward, DispatchForward, Backward, CombineBackward}),
            Places{});
}

TEST(ExchangesOracle, LetsExpertsComputeOnBothWays) {
  EXPECT_EQ(exchanged_out_of_place({DispatchForward, Forward, CombineForward, CombineBackward,
                                    Backward, DispatchBackward}),
            Places{});
  EXPECT_EQ(exchanged_out_of_place({DispatchForward, Forward, CombineForward, Backward}),
            Places{0});
  EXPECT_EQ(exchanged_out_of_place({DispatchForward, Forward, CombineForward, CombineBackward,
                                    DispatchBackward, Backward}),
            Places{0});
}

// Rows that are sent away twice are not with their rank.
TEST(ExchangesOracle, LetsNoExpertsComputeBetweenTwoOfAKind) {
  EXPECT_EQ(exchanged_out_of_place({DispatchForward, Forward, DispatchForward, CombineBackward,
                                    Backward, DispatchBackward}),
            (Places{0, 5}));
  EXPECT_EQ(exchanged_out_of_place({CombineForward, Forward, DispatchForward, DispatchBackward,
                                    Backward, CombineBackward}),
            (Places{0, 5}));
}

TEST(ExchangesOracle, SeesWhatComesBeforeItsForward) {
  EXPECT_EQ(exchanged_out_of_place({DispatchForward, CombineBackward, Forward, Backward}),
            (Places{0, 1}));
}

TEST(ExchangesOracle, SeesAForwardsExchangeBehindWhatNeedsIt) {
  EXPECT_EQ(exchanged_out_of_place({Forward, Backward, DispatchForward}), Places{2});
  EXPECT_EQ(exchanged_out_of_place({Forward, CombineBackward, DispatchForward, Backward}),
            Places{2});
}

TEST(ExchangesOracle, SeesABackwardBetweenItsExchanges) {
  EXPECT_EQ(exchanged_out_of_place({Forward, CombineBackward, Backward, DispatchBackward}),
            Places{3});
}

}  // namespace
}  // namespace capo::oracle
