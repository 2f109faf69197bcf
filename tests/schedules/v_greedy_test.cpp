// V-Half and V-Min: orders written by hand, their published bubbles and peaks, and the laws of
// every setting that is accepted.

#include "schedules/generators.h"
#include "tests/schedules/v_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

TEST(VGreedy, OnOneRankBothGoThereAndBack) {
  EXPECT_EQ(text(v_half(v_of(1, 1)).value()), Lines{"F0.0 F0.1 B0.1 W0.1 B0.0 W0.0"});
  EXPECT_EQ(text(v_min(v_of(1, 1)).value()), Lines{"F0.0 F0.1 B0.1 B0.0 W0.1 W0.0"});
}

TEST(VGreedy, OfTwoMicrobatchesVHalfStartsBothSecondForwardsFirst) {
  EXPECT_EQ(text(v_half(v_of(2, 2)).value()),
            (Lines{"F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B0.0 B1.1 W1.1 W0.0 B1.0 W1.0",
                   "F0.0 F0.1 F1.0 F1.1 B0.1 W0.1 B0.0 W0.0 B1.1 W1.1 B1.0 W1.0"}));
}

TEST(VGreedy, OfTwoMicrobatchesVMinEndsOneFirst) {
  EXPECT_EQ(text(v_min(v_of(2, 2)).value()),
            (Lines{"F0.0 F1.0 F0.1 B0.1 W0.1 B0.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0",
                   "F0.0 F0.1 B0.1 B0.0 F1.0 F1.1 W0.1 W0.0 B1.1 B1.0 W1.1 W1.0"}));
}

TEST(VGreedy, CostsAndMemoryDoNotMatter) {
  expect_costs_and_memory_do_not_matter(v_half);
  expect_costs_and_memory_do_not_matter(v_min);
}

TEST(VGreedy, RefusalsSayWhatIsWrong) {
  EXPECT_EQ(v_half({.ranks = 2, .microbatches = 2, .chunks = 1}).error(),
            "v-half holds 2 chunks a rank, not 1");
  EXPECT_EQ(v_min(v_of(2, 0)).error(), "v-min needs one microbatch at least, not 0");
}

TEST(VGreedy, EveryOrderIsWholeAndFinishes) {
  expect_whole_and_finishing(v_half);
  expect_whole_and_finishing(v_min);
}

// The closed forms of the paper, in chunks of equal forwards, input halves and weight halves.
TEST(VGreedy, BubbleAndPeakAreThePublishedOnes) {
  for (std::int32_t ranks = 3; ranks <= 16; ++ranks) {
    for (std::int32_t microbatches = 2 * ranks; microbatches <= 3 * ranks; microbatches += ranks) {
      const Setting setting = v_of(ranks, microbatches);
      const std::int32_t work = 6 * microbatches;

      const auto half = v_half(setting).value();
      const std::int32_t half_peak = 2 * ((ranks + 2) / 2);
      EXPECT_EQ(peak_of(half), half_peak);
      EXPECT_EQ(makespan(half, wave(setting)), work + 6 * ranks - 1 - 3 * half_peak);

      const auto min = v_min(setting).value();
      const std::int32_t min_peak = 2 * ((ranks + 4) / 3);
      const std::int32_t misfit = ranks % 3 == 2 ? 4 : 0;
      EXPECT_EQ(peak_of(min), min_peak);
      EXPECT_EQ(makespan(min, wave(setting)), work + 6 * ranks - 1 - 3 * min_peak + misfit);
    }
  }
}

}  // namespace
}  // namespace capo::schedules
