// DualPipe and DualPipeV: orders written by hand, who is refused, and the laws of all others.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

TEST(DualPipe, TheRanksOfTheSecondHalfStartWithTheSecondDirection) {
  const auto orders = dual_pipe({.ranks = 2, .microbatches = 6, .chunks = 2}).value();
  EXPECT_EQ(text(orders),
            (Lines{"F0.0 F0.1 F1.0 BW0.1 F1.1&BW0.0 F2.0&BW1.1 F2.1&BW1.0 BW2.1 B2.0 W2.0",
                   "F0.1 F0.0 F1.1 BW0.0 F1.0&BW0.1 F2.1&BW1.0 F2.0&BW1.1 BW2.0 B2.1 W2.1"}));
}

TEST(DualPipe, ARankBeforeTheMiddleSplitsTheFirstBackwardsThatReachIt) {
  const auto orders = dual_pipe({.ranks = 4, .microbatches = 8, .chunks = 2}).value();
  EXPECT_EQ(text(orders[0]),
            "F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 F3.0&BW1.1 F2.1&BW0.0 BW2.1 F3.1&BW1.0 BW3.1 B2.0 "
            "W2.0 B3.0 W3.0");
  EXPECT_EQ(text(orders[1]),
            "F0.0 F0.1 F1.0 F1.1 F2.0 BW0.1 F2.1&BW0.0 F3.0&BW1.1 F3.1&BW1.0 BW2.1 BW2.0 B3.1 B3.0 "
            "W3.1 W3.0");
}

TEST(DualPipe, AsksForPairs) {
  const auto refusal = [](std::int32_t ranks, std::int32_t microbatches, std::int32_t chunks) {
    return dual_pipe({.ranks = ranks, .microbatches = microbatches, .chunks = chunks}).error();
  };
  EXPECT_EQ(refusal(4, 8, 1), "dualpipe holds 2 chunks a rank, not 1");
  EXPECT_EQ(refusal(3, 8, 2), "dualpipe needs an even number of ranks, not 3");
  EXPECT_EQ(refusal(4, 9, 2), "dualpipe needs an even number of microbatches, not 9");
  EXPECT_EQ(refusal(4, 6, 2),
            "dualpipe needs two microbatches for every rank at least, not 6 for 4 ranks");
  EXPECT_TRUE(dual_pipe({.ranks = 4, .microbatches = 8, .chunks = 2}));
}

TEST(DualPipe, EveryOrderIsWholeFinishesAndHoldsOneMicrobatchMoreThanRanks) {
  for (std::int32_t ranks = 2; ranks <= 10; ranks += 2) {
    for (std::int32_t more = 0; more <= 6; more += 2) {
      const Setting setting = {.ranks = ranks, .microbatches = 2 * ranks + more, .chunks = 2};
      const auto orders = dual_pipe(setting).value();
      EXPECT_EQ(broken_law(orders, opposite(setting)), std::nullopt) << ranks << " " << more;
      EXPECT_EQ(most_held(orders),
                std::vector<std::int64_t>(static_cast<std::size_t>(ranks), ranks + 1));
    }
  }
}

TEST(DualPipe, TheBubbleIsTheAuthorsWhereForwardsAndInputHalvesAreEquallyLong) {
  for (std::int32_t ranks = 2; ranks <= 10; ranks += 2) {
    const Setting setting = {.ranks = ranks, .microbatches = 3 * ranks, .chunks = 2};
    const double overlapped = 3;
    const double backward = 2;
    const double weight = 1;
    EXPECT_EQ(makespan(dual_pipe(setting).value(), opposite(setting)) - 3 * setting.microbatches,
              (ranks / 2 - 1) * (overlapped + backward - 3 * weight));
  }
}

TEST(DualPipeV, TheWayBackIsTheOtherStream) {
  const auto orders = dual_pipe_v({.ranks = 2, .microbatches = 4, .chunks = 2}).value();
  EXPECT_EQ(text(orders),
            (Lines{"F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 F3.0&BW1.1 F2.1&BW0.0 BW2.1 F3.1&BW1.0 "
                   "BW3.1 B2.0 W2.0 B3.0 W3.0",
                   "F0.0 F0.1 F1.0 F1.1 F2.0 BW0.1 F2.1&BW0.0 F3.0&BW1.1 F3.1&BW1.0 BW2.1 BW2.0 "
                   "B3.1 B3.0 W3.1 W3.0"}));
}

TEST(DualPipeV, IsDualPipeCutInTheMiddle) {
  const auto whole = dual_pipe({.ranks = 6, .microbatches = 14, .chunks = 2}).value();
  const auto cut = dual_pipe_v({.ranks = 3, .microbatches = 7, .chunks = 2}).value();
  EXPECT_EQ(cut, PublishedOrders(whole.begin(), whole.begin() + 3));
}

TEST(DualPipeV, AsksForTwoMicrobatchesARank) {
  EXPECT_EQ(dual_pipe_v({.ranks = 3, .microbatches = 5, .chunks = 2}).error(),
            "dualpipev needs two microbatches for every rank at least, not 5 for 3 ranks");
  EXPECT_TRUE(dual_pipe_v({.ranks = 3, .microbatches = 6, .chunks = 2}));
  EXPECT_TRUE(dual_pipe_v({.ranks = 3, .microbatches = 7, .chunks = 2}));
  EXPECT_EQ(dual_pipe_v({.ranks = 3, .microbatches = 6, .chunks = 3}).error(),
            "dualpipev holds 2 chunks a rank, not 3");
}

TEST(DualPipeV, EveryOrderIsWholeFinishesAndHoldsOneChunkMoreThanTwoARank) {
  for (std::int32_t ranks = 1; ranks <= 8; ++ranks) {
    for (std::int32_t more = 0; more <= 5; ++more) {
      const Setting setting = {.ranks = ranks, .microbatches = 2 * ranks + more, .chunks = 2};
      const auto orders = dual_pipe_v(setting).value();
      EXPECT_EQ(broken_law(orders, wave(setting)), std::nullopt) << ranks << " " << more;
      EXPECT_EQ(most_held(orders),
                std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 2 * ranks + 1));
    }
  }
}

}  // namespace
}  // namespace capo::schedules
