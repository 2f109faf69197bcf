// Chimera on its grid of slots: orders written by hand, who is refused, and the closed forms.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

/// A whole backward is as long as a forward here: each takes a slot.
constexpr Costs kSlots = {.forward = 1, .backward = 0.5, .weight = 0.5};

TEST(Chimera, EachDirectionFillsTheOthersBubbles) {
  const auto orders = chimera({.ranks = 4, .microbatches = 4, .chunks = 2}).value();
  EXPECT_EQ(text(orders), (Lines{"F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0",
                                 "F0.0 F0.1 F1.0 F1.1 BW0.1 BW0.0 BW1.1 BW1.0",
                                 "F0.1 F0.0 F1.1 F1.0 BW0.0 BW0.1 BW1.0 BW1.1",
                                 "F0.1 F1.1 F0.0 BW0.0 F1.0 BW1.0 BW0.1 BW1.1"}));
}

TEST(Chimera, UnitsInterlock) {
  const auto orders = chimera({.ranks = 4, .microbatches = 8, .chunks = 2}).value();
  EXPECT_EQ(text(orders[0]),
            "F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 F2.0 BW1.0 F3.0 F2.1 BW2.1 F3.1 BW3.1 BW2.0 "
            "BW3.0");
}

TEST(Chimera, AsksForPairsOfRanksAndWholeUnits) {
  const auto refusal = [](std::int32_t ranks, std::int32_t microbatches, std::int32_t chunks) {
    return chimera({.ranks = ranks, .microbatches = microbatches, .chunks = chunks}).error();
  };
  EXPECT_EQ(refusal(4, 4, 1), "chimera holds 2 chunks a rank, not 1");
  EXPECT_EQ(refusal(3, 6, 2), "chimera needs an even number of ranks, not 3");
  EXPECT_EQ(refusal(4, 6, 2), "chimera needs a multiple of its 4 ranks as microbatches, not 6");
  EXPECT_TRUE(chimera({.ranks = 2, .microbatches = 2, .chunks = 2}));
}

TEST(Chimera, EveryOrderIsWholeAndTakesTheSlotsOfTheClosedForm) {
  for (std::int32_t ranks = 2; ranks <= 12; ranks += 2) {
    for (std::int32_t units = 1; units <= 4; ++units) {
      const Setting setting = {.ranks = ranks, .microbatches = units * ranks, .chunks = 2};
      const auto orders = chimera(setting).value();
      EXPECT_EQ(broken_law(orders, opposite(setting)), std::nullopt) << ranks << " " << units;
      EXPECT_EQ(makespan(orders, opposite(setting), kSlots), 2 * setting.microbatches + ranks - 2);
    }
  }
}

TEST(Chimera, ARankHoldsBetweenHalfOfThePipelineAndAllOfIt) {
  for (std::int32_t ranks = 2; ranks <= 12; ranks += 2) {
    const auto held =
        most_held(chimera({.ranks = ranks, .microbatches = 3 * ranks, .chunks = 2}).value());
    EXPECT_EQ(*std::min_element(held.begin(), held.end()), ranks / 2 + 1);
    EXPECT_EQ(*std::max_element(held.begin(), held.end()), ranks);
  }
}

TEST(Chimera, LongerBackwardsLeaveTheBubbleOfTheClosedFormInOneUnit) {
  for (std::int32_t ranks = 2; ranks <= 12; ranks += 2) {
    const Setting setting = {.ranks = ranks, .microbatches = ranks, .chunks = 2};
    EXPECT_EQ(makespan(chimera(setting).value(), opposite(setting)), 3 * ranks + 2 * (ranks - 2));
  }
}

}  // namespace
}  // namespace capo::schedules
