// The zero bubble search of linear pipelines: small orders that can be followed by hand, what it
// refuses, and laws over a grid of settings.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace capo::published {
namespace {

using Lines = std::vector<std::string>;

constexpr Memory kHalfAtBackward{.forward = 1, .backward = -0.5, .weight = -0.5};

Lines search(const Setting& setting) {
  const auto orders = zero_bubble_search(setting);
  return orders ? order_laws::text(*orders) : Lines{orders.error()};
}

std::string refusal(const Setting& setting) {
  const auto orders = zero_bubble_search(setting);
  return orders ? "" : orders.error();
}

double makespan(const Setting& setting) {
  const auto orders = zero_bubble_search(setting);
  return orders ? order_laws::makespan(*orders, order_laws::loop(setting), setting.costs) : -1;
}

double most_memory(const std::vector<Move>& order, const Memory& memory) {
  double held = 0;
  double most = 0;
  for (const Move& move : order) {
    held += move.kind == Kind::Forward         ? memory.forward
            : move.kind == Kind::BackwardInput ? memory.backward
                                               : memory.weight;
    most = std::max(most, held);
  }
  return most;
}

// Ranks 1 to 6, microbatches 1 to 13, times from equal to lopsided, memory that is released by W,
// by halves, by B or even taken by B, and limits from one microbatch to none.
std::size_t for_every_setting(const std::function<void(const Setting&)>& look) {
  constexpr std::array<Costs, 6> kCosts{
      {{1, 1, 1, 0}, {12, 13, 9, 1}, {10, 16, 4, 1}, {20, 20, 20, 5}, {1, 3, 5, 20}, {0, .3, .1}}};
  constexpr std::array<Memory, 4> kMemories{
      {{1, 0, -1}, kHalfAtBackward, {1, -1, 0}, {1, 0.5, -1.5}}};
  std::size_t settings = 0;
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (const std::int32_t microbatches : {1, 2, 3, 6, 13}) {
      for (const Costs& costs : kCosts) {
        for (const Memory& memory : kMemories) {
          for (const double limit : {1.5, 2.0, 2.7, 4.0, 6.5, 12.0, HUGE_VAL}) {
            SCOPED_TRACE(fmt::format("{} ranks, {} microbatches, {} {} {} {}, B {}, limit {}",
                                     ranks, microbatches, costs.forward, costs.backward,
                                     costs.weight, costs.transfer, memory.backward, limit));
            look({.ranks = ranks,
                  .microbatches = microbatches,
                  .costs = costs,
                  .memory = memory,
                  .memory_limit = limit});
            ++settings;
          }
        }
      }
    }
  }
  return settings;
}

// Ranks that differ by as much as tenfold, a few of them in each setting.
std::size_t for_unequal_ranks(const std::function<void(const Setting&)>& look) {
  constexpr std::array<Costs, 5> kCosts{
      {{10, 10, 10, 3}, {14, 15, 11, 3}, {3, 30, 9, 3}, {31, 2, 4, 3}, {0, 1, 20, 3}}};
  std::size_t settings = 0;
  for (std::size_t ranks = 2; ranks <= 6; ++ranks) {
    for (const std::int32_t microbatches : {1, 3, 7, 12}) {
      for (const double limit : {1.0, 2.5, 4.0, 6.0, HUGE_VAL}) {
        for (std::size_t mix = 0; mix < 25; ++mix) {
          Setting setting{.ranks = static_cast<std::int32_t>(ranks),
                          .microbatches = microbatches,
                          .memory = {1, -0.5, -0.5},
                          .memory_limit = limit};
          for (std::size_t r = 0; r < ranks; ++r) {
            setting.rank_costs.push_back(kCosts[(mix + r * (1 + mix / 5)) % kCosts.size()]);
          }
          SCOPED_TRACE(fmt::format("{} ranks, {} microbatches, limit {}, mix {}", ranks,
                                   microbatches, limit, mix));
          look(setting);
          ++settings;
        }
      }
    }
  }
  return settings;
}

TEST(ZeroBubbleSearch, FillsTheMemoryOfOneForwardOneBackward) {
  EXPECT_EQ(search({.ranks = 3, .microbatches = 4, .memory_limit = 3}),
            (Lines{"F0.0 F1.0 F2.0 B0.0 W0.0 F3.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0",
                   "F0.0 F1.0 B0.0 F2.0 B1.0 W0.0 F3.0 B2.0 W1.0 B3.0 W2.0 W3.0",
                   "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 F3.0 B3.0 W1.0 W2.0 W3.0"}));
}

TEST(ZeroBubbleSearch, RunsForwardsAheadWhenMemoryIsNoLimit) {
  EXPECT_EQ(search({.ranks = 3, .microbatches = 4}),
            (Lines{"F0.0 F1.0 F2.0 F3.0 B0.0 W0.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0",
                   "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 W0.0 B2.0 W1.0 B3.0 W2.0 W3.0",
                   "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0 W0.0 W1.0 W2.0 W3.0"}));
}

TEST(ZeroBubbleSearch, RunsOneMicrobatchAfterTheOtherWhenOneIsAllThatFits) {
  EXPECT_EQ(search({.ranks = 2, .microbatches = 3, .memory_limit = 1}),
            (Lines{"F0.0 B0.0 W0.0 F1.0 B1.0 W1.0 F2.0 B2.0 W2.0",
                   "F0.0 B0.0 W0.0 F1.0 B1.0 W1.0 F2.0 B2.0 W2.0"}));
}

TEST(ZeroBubbleSearch, GivesALoneRankAnOrder) {
  EXPECT_EQ(search({.microbatches = 2, .memory_limit = 2}), Lines{"F0.0 B0.0 F1.0 W0.0 B1.0 W1.0"});
}

TEST(ZeroBubbleSearch, KeepsTheLawsOfOrdersAndTheLimit) {
  const std::size_t settings = for_every_setting([](const Setting& setting) {
    const auto orders = zero_bubble_search(setting);
    ASSERT_TRUE(orders) << orders.error();
    ASSERT_EQ(orders->size(), static_cast<std::size_t>(setting.ranks));
    EXPECT_EQ(order_laws::broken_law(*orders, order_laws::loop(setting)), std::nullopt);
    for (const std::vector<Move>& order : *orders) {
      EXPECT_LE(most_memory(order, setting.memory), setting.memory_limit + 1e-9);
    }
  });
  EXPECT_EQ(settings, 6U * 5 * 6 * 4 * 7);
}

TEST(ZeroBubbleSearch, KeepsASlowRankBusy) {
  // The last rank, half as fast, begins at 1 and never waits; the W of the first fill its waits.
  EXPECT_EQ(search({.ranks = 2,
                    .microbatches = 3,
                    .rank_costs = {{1, 1, 1, 0}, {2, 2, 2, 0}},
                    .memory_limit = 2}),
            (Lines{"F0.0 F1.0 B0.0 W0.0 F2.0 B1.0 W1.0 B2.0 W2.0",
                   "F0.0 B0.0 F1.0 B1.0 W0.0 F2.0 B2.0 W1.0 W2.0"}));
}

TEST(ZeroBubbleSearch, KeepsTheLawsOfOrdersAndTheLimitWhereRanksDiffer) {
  const std::size_t settings = for_unequal_ranks([](const Setting& setting) {
    const auto orders = zero_bubble_search(setting);
    ASSERT_TRUE(orders) << orders.error();
    EXPECT_EQ(order_laws::broken_law(*orders, order_laws::loop(setting)), std::nullopt);
    for (const std::vector<Move>& order : *orders) {
      EXPECT_LE(most_memory(order, setting.memory), setting.memory_limit + 1e-9);
    }
  });
  EXPECT_EQ(settings, 5U * 4 * 5 * 25);
}

TEST(ZeroBubbleSearch, TakesEqualTimesOfEachRankForTimesOfAll) {
  for_every_setting([](const Setting& setting) {
    Setting each = setting;
    each.rank_costs.assign(static_cast<std::size_t>(setting.ranks), setting.costs);
    each.costs = {.forward = 77, .transfer = 5};
    EXPECT_EQ(search(setting), search(each));
  });
}

TEST(ZeroBubbleSearch, IsAsShortAsZbH1WithTheMemoryOfOneForwardOneBackward) {
  for (const Costs& costs : {Costs{}, Costs{12, 13, 9}, Costs{10, 16, 4}, Costs{5, 6, 4}}) {
    for (std::int32_t ranks = 2; ranks <= 9; ++ranks) {
      for (const std::int32_t times : {2, 3, 4}) {
        const Setting setting{.ranks = ranks,
                              .microbatches = times * ranks,
                              .costs = costs,
                              .memory_limit = static_cast<double>(ranks)};
        const double work = costs.forward + costs.backward + costs.weight;
        const double wait = costs.backward + std::max(0.0, costs.forward - costs.weight);
        EXPECT_EQ(makespan(setting), setting.microbatches * work + (ranks - 1) * wait)
            << ranks << " ranks, " << setting.microbatches << " microbatches";
      }
    }
  }
}

TEST(ZeroBubbleSearch, NeverWaitsWithTwiceThatMemoryAndEqualTimes) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    const Setting setting{.ranks = ranks, .microbatches = 3 * ranks, .memory_limit = 2.0 * ranks};
    EXPECT_EQ(makespan(setting), 3 * setting.microbatches + ranks - 1) << ranks << " ranks";
  }
}

TEST(ZeroBubbleSearch, ReachesALimitExactlyThoughFractionsAreRounded) {
  const Setting whole{.ranks = 8,
                      .microbatches = 24,
                      .costs = {29718, 29444, 19927, 527},
                      .memory = {37, -21, -16},
                      .memory_limit = 37 * 12};
  Setting rounded = whole;
  rounded.memory = {1, -21 / 37.0, -16 / 37.0};
  rounded.memory_limit = 12;
  EXPECT_EQ(search(whole), search(rounded));
}

TEST(ZeroBubbleSearch, LooksAtRatiosOfTimesAlone) {
  for_every_setting([](const Setting& setting) {
    Setting slower = setting;
    slower.costs = {.forward = setting.costs.forward * 4,
                    .backward = setting.costs.backward * 4,
                    .weight = setting.costs.weight * 4,
                    .transfer = setting.costs.transfer * 4};
    EXPECT_EQ(search(setting), search(slower));
  });
}

TEST(ZeroBubbleSearch, DecidesInMillisecondsAsInMicroseconds) {
  const Setting microseconds{
      .ranks = 24, .microbatches = 96, .costs = {6783, 6984, 5259, 758}, .memory_limit = 24};
  Setting milliseconds = microseconds;
  milliseconds.costs = {6.783, 6.984, 5.259, 0.758};
  EXPECT_EQ(search(microseconds), search(milliseconds));
  milliseconds.rank_costs.assign(24, milliseconds.costs);
  EXPECT_EQ(search(microseconds), search(milliseconds));
}

TEST(ZeroBubbleSearch, HoldsOneChunkARank) {
  EXPECT_EQ(refusal({.chunks = 2}), "zb holds one chunk a rank, not 2");
  EXPECT_EQ(refusal({.ranks = 0}), "zb needs one rank at least, not 0");
  EXPECT_EQ(refusal({.ranks = 1, .microbatches = 1, .chunks = 1}), "");
}

TEST(ZeroBubbleSearch, NeedsTimesOfZeroAtLeast) {
  EXPECT_EQ(refusal({.costs = {.weight = -1}}),
            "zb needs times that are finite and not negative, not -1");
  EXPECT_EQ(refusal({.ranks = 2, .rank_costs = {{}}}),
            "zb needs times of each of the 2 ranks, not of 1");
  EXPECT_EQ(refusal({.costs = {0, 0, 0, 0}}), "");
}

TEST(ZeroBubbleSearch, NeedsAMemoryThatWGivesBack) {
  EXPECT_EQ(refusal({.memory = {1, -2, 1}}),
            "zb needs a memory of 0 at least after F and after B, not 1 and -1");
  EXPECT_EQ(refusal({.memory = {-1, 1, 0}}),
            "zb needs a memory of 0 at least after F and after B, not -1 and 0");
  EXPECT_EQ(refusal({.memory = {1, -0.5, -0.25}}),
            "zb needs a W that gives back all that F and B hold, 0.5, not 0.25");
  EXPECT_EQ(refusal({.memory = {1, -0.1, -0.9}}), "");
  EXPECT_EQ(refusal({.memory = {0.3, -0.1 - 0.2, 0}}), "");
  EXPECT_EQ(refusal({.memory = {0, 0, 0}}), "");
}

TEST(ZeroBubbleSearch, NamesTheLeastLimit) {
  EXPECT_EQ(refusal({.memory = kHalfAtBackward, .memory_limit = 0.75}),
            "no order holds less than 1 on a rank, and the limit is 0.75");
  EXPECT_EQ(refusal({.memory = kHalfAtBackward, .memory_limit = 1}), "");
  EXPECT_EQ(refusal({.memory = {1, 0.5, -1.5}, .memory_limit = 1.25}),
            "no order holds less than 1.5 on a rank, and the limit is 1.25");
  EXPECT_EQ(refusal({.memory = {1, 0.5, -1.5}, .memory_limit = 1.5}), "");
  EXPECT_EQ(refusal({.memory_limit = std::numeric_limits<double>::quiet_NaN()}),
            "no order holds less than 1 on a rank, and the limit is nan");
}

}  // namespace
}  // namespace capo::published
