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

SlotChoice turns(std::int64_t slots) {
  return {.slots = slots, .map = {}};
}

std::vector<std::int64_t> needed(mcore::Configuration configuration,
                                 WeightGradients weights = WeightGradients::InBackward) {
  const auto slots =
      slots_for_any_microbatches({.configuration = configuration, .weight_gradients = weights});
  EXPECT_TRUE(slots.has_value());
  return slots ? slots->needed : std::vector<std::int64_t>{};
}

TEST(Slots, AreNeededFromTheForwardToTheBackward) {
  EXPECT_EQ(first_slot_taken(listed({1, 1, -1, 1, -1, -1}), turns(2)), std::nullopt);
  const auto taken = first_slot_taken(listed({1, 1, -1, 1, -1, -1}), turns(1));
  EXPECT_EQ(taken, (SlotTaken{.forward = 1, .reader = 2, .chunk = 1, .microbatch = 0, .taker = 1}));
}

TEST(Slots, AreNeededUntilAWeightGradientOfItsOwn) {
  const TeList order = listed({1, -1, 1, -1.5, -1, -1.5});
  EXPECT_EQ(first_slot_taken(order, turns(1)),
            (SlotTaken{.forward = 2, .reader = 3, .chunk = 1, .microbatch = 0, .taker = 1}));
  EXPECT_EQ(first_slot_taken(order, turns(2)), std::nullopt);
}

TEST(Slots, WithoutAReaderAreNeverFree) {
  EXPECT_EQ(
      first_slot_taken(listed({1, 1}), turns(1)),
      (SlotTaken{.forward = 1, .reader = std::nullopt, .chunk = 1, .microbatch = 0, .taker = 1}));
}

TEST(Slots, Of1F1BAreTheRanksThatFollow) {
  EXPECT_EQ(needed({.pipeline = 4}), (std::vector<std::int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(needed({.pipeline = 1}), std::vector<std::int64_t>{1});
}

TEST(Slots, OfAConfigurationThatMegatronRefusesAreNone) {
  EXPECT_EQ(needed({.pipeline = 2, .ep_overlap = true}), std::vector<std::int64_t>{});
}

TEST(Slots, OfAMapAreTakenAsItSays) {
  const TeList order = listed({1, 1, -1, 1, -1, 1, -1, -1});
  EXPECT_EQ(first_slot_taken(order, {.map = {0, 1, 0, 2}}), std::nullopt);
  EXPECT_EQ(first_slot_taken(order, {.map = {0, 1, 1}}),
            (SlotTaken{.forward = 3, .reader = 4, .chunk = 1, .microbatch = 1, .taker = 2}));
  EXPECT_EQ(first_slot_taken(order, {.map = {0}}),
            (SlotTaken{.forward = 1, .reader = 2, .chunk = 1, .microbatch = 0, .taker = 1}));
}

// Every map of up to four slots from three, of several families: what is said of any number is so
// for twice as many microbatches as were looked at.
TEST(Slots, OfAMapThatHoldsDoSoFarBeyondTheNumbersThatWereLookedAt) {
  std::size_t hold = 0;
  std::size_t maps = 0;
  for (const mcore::Configuration& configuration :
       {mcore::Configuration{.pipeline = 2}, mcore::Configuration{.pipeline = 3},
        mcore::Configuration{.pipeline = 2, .virtual_stages = 2},
        mcore::Configuration{.pipeline = 2, .virtual_stages = 2, .group_size = 3}}) {
    Request request{.configuration = configuration};
    const auto slots = slots_for_any_microbatches(request);
    ASSERT_TRUE(slots.has_value());
    for (std::size_t length = 1; length <= 4; ++length) {
      std::size_t count = 1;
      for (std::size_t k = 0; k < length; ++k) count *= 3;
      for (std::size_t number = 0; number < count; ++number) {
        SlotChoice choice;
        for (std::size_t k = 0, rest = number; k < length; ++k, rest /= 3)
          choice.map.push_back(static_cast<std::int64_t>(rest % 3));
        const auto verdict = judge_choice(request, choice, *slots);
        ASSERT_TRUE(verdict.has_value());
        ++maps;
        if (verdict->counterexample) continue;
        ++hold;
        for (std::int64_t m = 1; m <= 2 * verdict->looked_at; ++m) {
          request.configuration.microbatches = m;
          if (mcore::refusal(request.configuration)) continue;
          const auto made = orders_of(request);
          ASSERT_TRUE(made.has_value());
          for (const TeList& order : made->orders)
            EXPECT_EQ(first_slot_taken(order, choice), std::nullopt) << m;
        }
      }
    }
  }
  std::printf("%zu of %zu maps hold\n", hold, maps);
  EXPECT_EQ(maps, 480U);
  EXPECT_GT(hold, 10U);
}

// A map that names as many slots in turn is what that number is.
TEST(Slots, OfAMapInTurnAreAsMany) {
  const Request request{.configuration = {.pipeline = 4, .virtual_stages = 2}};
  const auto slots = slots_for_any_microbatches(request);
  ASSERT_TRUE(slots.has_value());
  for (std::int64_t count = 1; count <= 12; ++count) {
    SlotChoice map;
    for (std::int64_t slot = 0; slot < count; ++slot) map.map.push_back(slot);
    const auto by_map = judge_choice(request, map, *slots);
    const auto in_turn = judge_choice(request, turns(count), *slots);
    ASSERT_TRUE(by_map.has_value() && in_turn.has_value());
    ASSERT_EQ(by_map->counterexample.has_value(), in_turn->counterexample.has_value()) << count;
    if (!in_turn->counterexample) continue;
    EXPECT_EQ(by_map->counterexample->taken, in_turn->counterexample->taken);
  }
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
              EXPECT_EQ(first_slot_taken(made->orders[r], turns(slots->needed[r])), std::nullopt)
                  << pp << " " << vp << " " << group << " " << overlap << " " << m << " " << r;
              const bool taken =
                  slots->needed[r] > 1 &&
                  first_slot_taken(made->orders[r], turns(slots->needed[r] - 1)).has_value();
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
