// V schedules within a memory limit: an order written by hand, the limit kept, the bubbles that the
// paper proves best, and which limits are refused.

#include "schedules/generators.h"
#include "tests/schedules/v_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

// A chunk counts 1.
Setting v_of(std::int32_t ranks, std::int32_t microbatches, double limit) {
  return {.ranks = ranks, .microbatches = microbatches, .chunks = 2, .memory_limit = limit};
}

TEST(VAdaptive, OneMicrobatchHasNothingToChoose) {
  EXPECT_EQ(text(v_adaptive(v_of(2, 1, 2)).value()),
            (Lines{"F0.0 F0.1 B0.1 W0.1 B0.0 W0.0", "F0.0 F0.1 B0.1 B0.0 W0.1 W0.0"}));
}

TEST(VAdaptive, WeightHalvesWaitUntilTheLastRankIsDone) {
  EXPECT_EQ(text(v_adaptive(v_of(2, 2, 4)).value()),
            (Lines{"F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 W0.1 B1.0 W1.1 W0.0 W1.0",
                   "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0"}));
}

TEST(VAdaptive, EveryOrderIsWholeAndFinishesWithinTheLimit) {
  const Costs uneven = {.forward = 10, .backward = 16, .weight = 4, .transfer = 1};
  for (std::int32_t ranks = 2; ranks <= 5; ++ranks) {
    for (std::int32_t microbatches = 1; microbatches <= 4 * ranks; ++microbatches) {
      for (std::int32_t limit = 2 * ((ranks + 4) / 3); limit <= 2 * ranks + 1; ++limit) {
        Setting setting = v_of(ranks, microbatches, limit);
        if (microbatches % 2 == 0) setting.costs = uneven;
        const auto orders = v_adaptive(setting).value();
        EXPECT_EQ(broken_law(orders, wave(setting)), std::nullopt)
            << ranks << " " << microbatches << " " << limit;
        EXPECT_LE(peak_of(orders), limit) << ranks << " " << microbatches << " " << limit;
      }
    }
  }
}

TEST(VAdaptive, EveryChunkOfMemorySavesThreeSlots) {
  for (std::int32_t ranks = 4; ranks <= 7; ++ranks) {
    for (std::int32_t limit = 2 * ((ranks + 4) / 3); 2 * limit <= 3 * ranks; ++limit) {
      const Setting setting = v_of(ranks, 2 * ranks + 1, limit);
      EXPECT_EQ(makespan(v_adaptive(setting).value(), wave(setting)),
                6 * setting.microbatches + 6 * ranks - 1 - 3 * limit)
          << ranks << " " << limit;
    }
  }
}

TEST(VAdaptive, TwoChunksForEveryRankLeaveNoBubbleButTheStart) {
  for (std::int32_t ranks = 2; ranks <= 6; ++ranks) {
    const Setting setting = v_of(ranks, 2 * ranks + 1, 2 * ranks);
    EXPECT_EQ(makespan(v_adaptive(setting).value(), wave(setting)),
              6 * setting.microbatches + ranks - 1);
  }
}

TEST(VAdaptive, MoreMemoryThanThatIsNotUsed) {
  const auto enough = v_adaptive(v_of(4, 9, 8)).value();
  EXPECT_EQ(v_adaptive(v_of(4, 9, 100)).value(), enough);
  EXPECT_EQ(v_adaptive({.ranks = 4, .microbatches = 9, .chunks = 2}).value(), enough);
}

TEST(VAdaptive, ThreadsFindTheSameOrder) {
  for (const std::int32_t microbatches : {5, 9, 40}) {
    Setting setting = v_of(6, microbatches, 9);
    const auto alone = v_adaptive(setting).value();
    setting.threads = 3;
    EXPECT_EQ(v_adaptive(setting).value(), alone) << microbatches;
  }
}

TEST(VAdaptive, TheLimitIsInTheUnitOfTheMemory) {
  Setting thirds = v_of(4, 9, 2);
  thirds.memory = {.forward = 1.0 / 3, .backward = 0, .weight = -1.0 / 3};
  EXPECT_EQ(v_adaptive(thirds).value(), v_adaptive(v_of(4, 9, 6)).value());
}

TEST(VAdaptive, ManyMicrobatchesRepeatTheMiddleOfFewer) {
  for (const std::int32_t microbatches : {12, 13, 14, 40}) {
    const Setting setting = v_of(4, microbatches, 6);
    const auto orders = v_adaptive(setting).value();
    EXPECT_EQ(broken_law(orders, wave(setting)), std::nullopt);
    EXPECT_EQ(makespan(orders, wave(setting)), 6 * microbatches + 5);
    EXPECT_EQ(peak_of(orders), 6);
  }
}

TEST(VAdaptive, RefusalsSayWhatIsWrong) {
  EXPECT_EQ(v_adaptive(v_of(1, 4, 4)).error(), "v-adaptive needs two ranks at least, not 1");
  EXPECT_EQ(v_adaptive({.ranks = 2, .microbatches = 2, .chunks = 1}).error(),
            "v-adaptive holds 2 chunks a rank, not 1");
  EXPECT_EQ(v_adaptive(v_of(5, 20, 5)).error(),
            "no V of building blocks fits 5 chunks of memory on 5 ranks");
  EXPECT_TRUE(v_adaptive(v_of(5, 20, 6)).has_value());
}

}  // namespace
}  // namespace capo::schedules
