// The zero bubble search of V pipelines: small orders that can be followed by hand, what it
// refuses, and laws over a grid of settings.

#include "schedules/zero_bubble_v_search.h"
#include "tests/schedules/order_laws.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace capo::published {
namespace {

using Lines = std::vector<std::string>;

Lines search(const Setting& setting) {
  const auto orders = zero_bubble_v_search(setting);
  return orders ? order_laws::text(*orders) : Lines{orders.error()};
}

std::string refusal(const Setting& setting) {
  const auto orders = zero_bubble_v_search(setting);
  return orders ? "" : orders.error();
}

double makespan(const Setting& setting) {
  const auto orders = zero_bubble_v_search(setting);
  return orders ? order_laws::makespan(*orders, order_laws::wave(setting), setting.costs) : -1;
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
// by halves, by B or even taken by B, and limits from one microbatch, below what the
// published heuristic needs, to none.
std::size_t for_every_setting(const std::function<void(const Setting&)>& look) {
  constexpr std::array<Costs, 6> kCosts{
      {{1, 1, 1, 0}, {12, 13, 9, 1}, {10, 16, 4, 1}, {20, 20, 20, 5}, {1, 3, 5, 20}, {0, .3, .1}}};
  constexpr std::array<Memory, 4> kMemories{
      {{1, 0, -1}, {1, -0.5, -0.5}, {1, -1, 0}, {1, 0.5, -1.5}}};
  std::size_t settings = 0;
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (const std::int32_t microbatches : {1, 2, 3, 6, 13}) {
      for (const Costs& costs : kCosts) {
        for (const Memory& memory : kMemories) {
          for (const double limit : {2.5, 3.0, 4.2, 6.0, 8.5, 12.0, HUGE_VAL}) {
            SCOPED_TRACE(fmt::format("{} ranks, {} microbatches, {} {} {} {}, B {}, limit {}",
                                     ranks, microbatches, costs.forward, costs.backward,
                                     costs.weight, costs.transfer, memory.backward, limit));
            look({.ranks = ranks,
                  .microbatches = microbatches,
                  .chunks = 2,
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
      for (const double limit : {2.0, 3.5, 5.0, 8.0, HUGE_VAL}) {
        for (std::size_t mix = 0; mix < 25; ++mix) {
          Setting setting{.ranks = static_cast<std::int32_t>(ranks),
                          .microbatches = microbatches,
                          .chunks = 2,
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

TEST(ZeroBubbleVSearch, BringsTheFirstMicrobatchBackBeforeItFillsTheRanks) {
  EXPECT_EQ(search({.ranks = 2, .microbatches = 2, .chunks = 2, .memory_limit = 4}),
            (Lines{"F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 W0.1 B1.0 W1.1 W0.0 W1.0",
                   "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0"}));
}

TEST(ZeroBubbleVSearch, PutsAWWhereMemoryDemandsOne) {
  EXPECT_EQ(search({.ranks = 2, .microbatches = 3, .chunks = 2, .memory_limit = 4}),
            (Lines{"F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 F2.1 B2.1 B1.0 W2.1 "
                   "B2.0 W1.0 W2.0",
                   "F0.0 F0.1 F1.0 F1.1 B0.1 W0.1 F2.0 B0.0 W0.0 F2.1 B1.1 B1.0 B2.1 B2.0 W1.1 "
                   "W1.0 W2.1 W2.0"}));
}

TEST(ZeroBubbleVSearch, RunsOneMicrobatchAfterTheOtherWhenOneIsAllThatFits) {
  EXPECT_EQ(search({.ranks = 2, .microbatches = 2, .chunks = 2, .memory_limit = 2}),
            (Lines{"F0.0 F0.1 B0.1 W0.1 B0.0 F1.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0",
                   "F0.0 F0.1 B0.1 B0.0 W0.1 W0.0 F1.0 F1.1 B1.1 B1.0 W1.1 W1.0"}));
}

TEST(ZeroBubbleVSearch, FitsAForwardOfTheNextIntoTheMemoryOfOneAndAHalf) {
  EXPECT_EQ(search({.ranks = 2, .microbatches = 2, .chunks = 2, .memory_limit = 3}),
            (Lines{"F0.0 F1.0 F0.1 B0.1 W0.1 B0.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0",
                   "F0.0 F0.1 F1.0 B0.1 B0.0 W0.1 F1.1 W0.0 B1.1 B1.0 W1.1 W1.0"}));
}

TEST(ZeroBubbleVSearch, RunsTheWsOfALoneRankAtOnce) {
  EXPECT_EQ(search({.microbatches = 2, .chunks = 2, .costs = {.transfer = 9}}),
            Lines{"F0.0 F0.1 B0.1 W0.1 F1.0 B0.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0"});
}

TEST(ZeroBubbleVSearch, KeepsTheLawsOfOrdersAndTheLimit) {
  const std::size_t settings = for_every_setting([](const Setting& setting) {
    const auto orders = zero_bubble_v_search(setting);
    ASSERT_TRUE(orders) << orders.error();
    ASSERT_EQ(orders->size(), static_cast<std::size_t>(setting.ranks));
    EXPECT_EQ(order_laws::broken_law(*orders, order_laws::wave(setting)), std::nullopt);
    for (const std::vector<Move>& order : *orders) {
      EXPECT_LE(most_memory(order, setting.memory), setting.memory_limit + 1e-9);
    }
  });
  EXPECT_EQ(settings, 6U * 5 * 6 * 4 * 7);
}

TEST(ZeroBubbleVSearch, KeepsASlowRankBusy) {
  // The last rank, half as fast, begins at 1 and never waits.
  EXPECT_EQ(search({.ranks = 2,
                    .microbatches = 2,
                    .chunks = 2,
                    .rank_costs = {{1, 1, 1, 0}, {2, 2, 2, 0}},
                    .memory_limit = 4}),
            (Lines{"F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0",
                   "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0"}));
}

TEST(ZeroBubbleVSearch, KeepsTheLawsOfOrdersAndTheLimitWhereRanksDiffer) {
  const std::size_t settings = for_unequal_ranks([](const Setting& setting) {
    const auto orders = zero_bubble_v_search(setting);
    ASSERT_TRUE(orders) << orders.error();
    EXPECT_EQ(order_laws::broken_law(*orders, order_laws::wave(setting)), std::nullopt);
    for (const std::vector<Move>& order : *orders) {
      EXPECT_LE(most_memory(order, setting.memory), setting.memory_limit + 1e-9);
    }
  });
  EXPECT_EQ(settings, 5U * 4 * 5 * 25);
}

TEST(ZeroBubbleVSearch, TakesEqualTimesOfEachRankForTimesOfAll) {
  for_every_setting([](const Setting& setting) {
    Setting each = setting;
    each.rank_costs.assign(static_cast<std::size_t>(setting.ranks), setting.costs);
    each.costs = {.forward = 77, .transfer = 5};
    EXPECT_EQ(search(setting), search(each));
  });
}

TEST(ZeroBubbleVSearch, NeverWaitsWithTheMemoryOfOneForwardOneBackwardAndEqualTimes) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    const Setting setting{
        .ranks = ranks, .microbatches = 2 * ranks, .chunks = 2, .memory_limit = 2.0 * ranks};
    EXPECT_EQ(makespan(setting), 6 * setting.microbatches + ranks - 1) << ranks << " ranks";
  }
}

TEST(ZeroBubbleVSearch, IsBusyMostOfTheTimeWithHalfThatMemory) {
  for (const std::int32_t ranks : {4, 6, 8}) {
    const Setting setting{.ranks = ranks,
                          .microbatches = 4 * ranks,
                          .chunks = 2,
                          .memory_limit = static_cast<double>(ranks)};
    const double work = 6.0 * setting.microbatches;
    EXPECT_LT(makespan(setting), 1.3 * work) << ranks << " ranks";
  }
}

TEST(ZeroBubbleVSearch, ReachesALimitExactlyThoughFractionsAreRounded) {
  const Setting whole{.ranks = 8,
                      .microbatches = 24,
                      .chunks = 2,
                      .costs = {14859, 14722, 9963.5, 527},
                      .memory = {37, -21, -16},
                      .memory_limit = 37 * 16};
  Setting rounded = whole;
  rounded.memory = {0.5, -21 / 74.0, -16 / 74.0};
  rounded.memory_limit = 8;
  EXPECT_EQ(search(whole), search(rounded));
}

TEST(ZeroBubbleVSearch, LooksAtRatiosOfTimesAlone) {
  for_every_setting([](const Setting& setting) {
    Setting slower = setting;
    slower.costs = {.forward = setting.costs.forward * 4,
                    .backward = setting.costs.backward * 4,
                    .weight = setting.costs.weight * 4,
                    .transfer = setting.costs.transfer * 4};
    EXPECT_EQ(search(setting), search(slower));
  });
}

TEST(ZeroBubbleVSearch, DecidesInMillisecondsAsInMicroseconds) {
  const Setting microseconds{.ranks = 24,
                             .microbatches = 96,
                             .chunks = 2,
                             .costs = {6783, 6984, 5259, 758},
                             .memory_limit = 48};
  Setting milliseconds = microseconds;
  milliseconds.costs = {6.783, 6.984, 5.259, 0.758};
  EXPECT_EQ(search(microseconds), search(milliseconds));
  milliseconds.rank_costs.assign(24, milliseconds.costs);
  EXPECT_EQ(search(microseconds), search(milliseconds));
}

TEST(ZeroBubbleVSearch, HoldsTwoChunksARank) {
  EXPECT_EQ(refusal({.chunks = 1}), "zbv holds 2 chunks a rank, not 1");
  EXPECT_EQ(refusal({.chunks = 3}), "zbv holds 2 chunks a rank, not 3");
  EXPECT_EQ(refusal({.microbatches = 0, .chunks = 2}), "zbv needs one microbatch at least, not 0");
  EXPECT_EQ(refusal({.ranks = 1, .microbatches = 1, .chunks = 2}), "");
}

TEST(ZeroBubbleVSearch, RefusesTimesAndMemoryAsTheLinearSearchDoes) {
  EXPECT_EQ(refusal({.chunks = 2, .costs = {.backward = -1}}),
            "zbv needs times that are finite and not negative, not -1");
  EXPECT_EQ(refusal({.ranks = 2, .chunks = 2, .rank_costs = {{}}}),
            "zbv needs times of each of the 2 ranks, not of 1");
  EXPECT_EQ(refusal({.chunks = 2, .memory = {1, -0.5, -0.25}}),
            "zbv needs a W that gives back all that F and B hold, 0.5, not 0.25");
}

TEST(ZeroBubbleVSearch, NamesTheLeastLimit) {
  EXPECT_EQ(refusal({.chunks = 2, .memory_limit = 1.5}),
            "no order holds less than 2 on a rank, and the limit is 1.5");
  EXPECT_EQ(refusal({.chunks = 2, .memory_limit = 2}), "");
  EXPECT_EQ(refusal({.chunks = 2, .memory = {1, 0.5, -1.5}, .memory_limit = 2.25}),
            "no order holds less than 2.5 on a rank, and the limit is 2.25");
  EXPECT_EQ(refusal({.chunks = 2, .memory = {1, 0.5, -1.5}, .memory_limit = 2.5}), "");
}

}  // namespace
}  // namespace capo::published
