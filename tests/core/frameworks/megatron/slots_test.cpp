// Slots of a family of Megatron's orders: enough for every number of microbatches, and not fewer.

#include "core/frameworks/megatron/orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace capo::megatron {
namespace {

// Only the numbers of a list matter.
TeList listed(std::initializer_list<double> values) {
  TeList list;
  for (const double value : values) list.entries.push_back({.value = value});
  return list;
}

std::vector<std::int64_t> needed(mcore::Configuration configuration,
                                 WeightGradients weights = WeightGradients::InBackward) {
  const auto slots =
      slots_for_any_microbatches({.configuration = configuration, .weight_gradients = weights});
  EXPECT_TRUE(slots.has_value());
  return slots ? slots->needed : std::vector<std::int64_t>{};
}

TEST(Slots, AreNeededFromTheForwardToTheBackward) {
  EXPECT_EQ(first_slot_taken(listed({1, 1, -1, 1, -1, -1}), 2), std::nullopt);
  const auto taken = first_slot_taken(listed({1, 1, -1, 1, -1, -1}), 1);
  EXPECT_EQ(taken, (SlotTaken{.forward = 1, .reader = 2, .chunk = 1, .microbatch = 0}));
}

TEST(Slots, AreNeededUntilAWeightGradientOfItsOwn) {
  const TeList order = listed({1, -1, 1, -1.5, -1, -1.5});
  EXPECT_EQ(first_slot_taken(order, 1),
            (SlotTaken{.forward = 2, .reader = 3, .chunk = 1, .microbatch = 0}));
  EXPECT_EQ(first_slot_taken(order, 2), std::nullopt);
}

TEST(Slots, WithoutAReaderAreNeverFree) {
  EXPECT_EQ(first_slot_taken(listed({1, 1}), 1),
            (SlotTaken{.forward = 1, .reader = std::nullopt, .chunk = 1, .microbatch = 0}));
}

TEST(Slots, Of1F1BAreTheRanksThatFollow) {
  EXPECT_EQ(needed({.pipeline = 4}), (std::vector<std::int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(needed({.pipeline = 1}), std::vector<std::int64_t>{1});
}

TEST(Slots, OfAConfigurationThatMegatronRefusesAreNone) {
  EXPECT_EQ(needed({.pipeline = 2, .ep_overlap = true}), std::vector<std::int64_t>{});
}

// Every configuration of a grid: as many as are needed suffice up to four times the numbers that
// were looked at, and one less does not somewhere.
TEST(Slots, SufficeFarBeyondTheNumbersThatWereLookedAtAndOneLessDoesNot) {
  std::size_t families = 0;
  for (std::int64_t pp = 2; pp <= 5; ++pp) {
    for (std::int64_t vp = 1; vp <= 3; ++vp) {
      for (std::int64_t group = pp; group <= pp + 2; ++group) {
        for (const bool overlap : {false, true}) {
          Request request{
              .configuration = {.pipeline = pp,
                                .virtual_stages = vp,
                                .group_size = group,
                                .ep_overlap = overlap},
              .layers_per_chunk =
                  std::vector<std::int64_t>(static_cast<std::size_t>(vp), overlap ? 2 : 1),
              .weight_gradients = overlap ? WeightGradients::Delayed : WeightGradients::InBackward};
          const auto slots = slots_for_any_microbatches(request);
          ASSERT_TRUE(slots.has_value());
          ++families;
          std::vector<bool> one_less_fails(slots->needed.size());
          for (std::int64_t m = 1; m <= 4 * slots->looked_at; ++m) {
            request.configuration.microbatches = m;
            if (mcore::refusal(request.configuration)) continue;
            const auto made = orders_of(request);
            ASSERT_TRUE(made.has_value());
            for (std::size_t r = 0; r < made->orders.size(); ++r) {
              EXPECT_EQ(first_slot_taken(made->orders[r], slots->needed[r]), std::nullopt)
                  << pp << " " << vp << " " << group << " " << overlap << " " << m << " " << r;
              const bool taken =
                  slots->needed[r] > 1 &&
                  first_slot_taken(made->orders[r], slots->needed[r] - 1).has_value();
              one_less_fails[r] = one_less_fails[r] || taken || slots->needed[r] == 1;
            }
          }
          EXPECT_TRUE(std::all_of(one_less_fails.begin(), one_less_fails.end(),
                                  [](bool fails) { return fails; }));
        }
      }
    }
  }
  std::printf("%zu families of orders\n", families);
  EXPECT_EQ(families, 72U);
}

}  // namespace
}  // namespace capo::megatron
