// Interleaved 1F1B in groups: orders written by hand, what a group costs and holds, and the laws of
// every setting that is accepted.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

TEST(GroupInterleaved, AGroupIsThroughOneChunkBeforeItEntersTheNext) {
  const auto orders = group_interleaved({.ranks = 2, .microbatches = 2, .chunks = 2}, 2).value();
  EXPECT_EQ(text(orders), (Lines{"F0.0 F1.0 F0.1 F1.1 B0.1 W0.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0",
                                 "F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0"}));
}

TEST(GroupInterleaved, ASmallerGroupHoldsLess) {
  const auto orders = group_interleaved({.ranks = 2, .microbatches = 3, .chunks = 2}, 1).value();
  EXPECT_EQ(text(orders),
            (Lines{"F0.0 F0.1 F1.0 B0.1 W0.1 F1.1 B0.0 W0.0 F2.0 B1.1 W1.1 F2.1 B1.0 W1.0 B2.1 "
                   "W2.1 B2.0 W2.0",
                   "F0.0 F0.1 B0.1 W0.1 F1.0 B0.0 W0.0 F1.1 B1.1 W1.1 F2.0 B1.0 W1.0 F2.1 B2.1 "
                   "W2.1 B2.0 W2.0"}));
}

TEST(GroupInterleaved, WithOneChunkItIsOneForwardOneBackward) {
  const auto orders = group_interleaved({.ranks = 2, .microbatches = 3}, 1).value();
  EXPECT_EQ(text(orders), (Lines{"F0.0 F1.0 B0.0 W0.0 F2.0 B1.0 W1.0 B2.0 W2.0",
                                 "F0.0 B0.0 W0.0 F1.0 B1.0 W1.0 F2.0 B2.0 W2.0"}));
}

TEST(GroupInterleaved, CostsAndMemoryDoNotMatter) {
  const Setting setting = {.ranks = 4, .microbatches = 9, .chunks = 2};
  Setting other = setting;
  other.costs = {.forward = 10, .backward = 16, .weight = 4, .transfer = 1};
  other.memory_limit = 1;
  EXPECT_EQ(group_interleaved(setting, 2).value(), group_interleaved(other, 2).value());
}

TEST(GroupInterleaved, RefusalsSayWhatIsMissing) {
  const auto refusal = [](const Setting& setting, std::int32_t group) {
    return group_interleaved(setting, group).error();
  };
  EXPECT_EQ(refusal({}, 0), "gis needs one microbatch a group at least, not 0");
  EXPECT_EQ(refusal({.chunks = 0}, 1), "gis needs one chunk a rank at least, not 0");
  EXPECT_TRUE(group_interleaved({}, 1).has_value());
}

TEST(GroupInterleaved, EverySettingIsWholeAndFinishes) {
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int32_t chunks = 1; chunks <= 4; ++chunks) {
      for (std::int32_t microbatches = 1; microbatches <= 9; ++microbatches) {
        for (std::int32_t group = 1; group <= 8; ++group) {
          const Setting setting = {.ranks = ranks, .microbatches = microbatches, .chunks = chunks};
          EXPECT_EQ(broken_law(group_interleaved(setting, group).value(), loop(setting)),
                    std::nullopt)
              << ranks << " " << chunks << " " << microbatches << " " << group;
        }
      }
    }
  }
}

TEST(GroupInterleaved, BetweenHalfTheRanksAndAllTheGroupTradesBubbleForMemory) {
  for (std::int32_t ranks = 2; ranks <= 8; ++ranks) {
    for (std::int32_t chunks = 1; chunks <= 4; ++chunks) {
      for (std::int32_t group = (ranks + 1) / 2; group <= ranks; ++group) {
        const Setting setting = {.ranks = ranks, .microbatches = 4 * group, .chunks = chunks};
        const auto orders = group_interleaved(setting, group).value();
        EXPECT_EQ(
            makespan(orders, loop(setting)),
            3 * setting.microbatches * chunks + 2 * (ranks - 1) + (ranks - group) * (chunks - 1))
            << ranks << " " << chunks << " " << group;
        for (std::int32_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(most_held(orders)[static_cast<std::size_t>(rank)],
                    group * (chunks - 1) + ranks - rank);
        }
      }
    }
  }
}

}  // namespace
}  // namespace capo::schedules
