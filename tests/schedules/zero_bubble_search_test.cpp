// The zero bubble searches of linear and of V pipelines: small orders that can be followed by hand,
// what they refuse, and laws over a grid of settings that both keep.

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

namespace capo::schedules {
namespace {

using Lines = std::vector<std::string>;

struct Search {
  const char* name;
  Generated (*generate)(const Setting&);
  std::int32_t chunks;
  order_laws::Layout (*layout)(const Setting&);
  /// The limits begin at one microbatch, below what the published heuristic of the V needs.
  std::array<double, 7> limits;
  std::array<double, 5> limits_of_unequal_ranks;

  [[nodiscard]] Lines lines(Setting setting) const {
    setting.chunks = chunks;
    const auto orders = generate(setting);
    return orders ? order_laws::text(*orders) : Lines{orders.error()};
  }

  [[nodiscard]] double makespan(Setting setting) const {
    setting.chunks = chunks;
    const auto orders = generate(setting);
    return orders ? order_laws::makespan(*orders, layout(setting), setting.costs) : -1;
  }
};

constexpr Search kLinear{.name = "Linear",
                         .generate = zero_bubble_search,
                         .chunks = 1,
                         .layout = order_laws::loop,
                         .limits = {1.5, 2.0, 2.7, 4.0, 6.5, 12.0, HUGE_VAL},
                         .limits_of_unequal_ranks = {1.0, 2.5, 4.0, 6.0, HUGE_VAL}};
constexpr Search kV{.name = "V",
                    .generate = zero_bubble_v_search,
                    .chunks = 2,
                    .layout = order_laws::wave,
                    .limits = {2.5, 3.0, 4.2, 6.0, 8.5, 12.0, HUGE_VAL},
                    .limits_of_unequal_ranks = {2.0, 3.5, 5.0, 8.0, HUGE_VAL}};

std::string refusal(const Search& search, const Setting& setting) {
  const auto orders = search.generate(setting);
  return orders ? "" : orders.error();
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

void expect_laws(const Search& search, const Setting& setting) {
  const auto orders = search.generate(setting);
  ASSERT_TRUE(orders) << orders.error();
  ASSERT_EQ(orders->size(), static_cast<std::size_t>(setting.ranks));
  EXPECT_EQ(order_laws::broken_law(*orders, search.layout(setting)), std::nullopt);
  for (const std::vector<Move>& order : *orders) {
    EXPECT_LE(most_memory(order, setting.memory), setting.memory_limit + 1e-9);
  }
}

// Ranks 1 to 6, microbatches 1 to 13, times from equal to lopsided, memory that is released by W,
// by halves, by B or even taken by B, and limits from one microbatch to none.
std::size_t for_every_setting(const Search& search,
                              const std::function<void(const Setting&)>& look) {
  constexpr std::array<Costs, 6> kCosts{
      {{1, 1, 1, 0}, {12, 13, 9, 1}, {10, 16, 4, 1}, {20, 20, 20, 5}, {1, 3, 5, 20}, {0, .3, .1}}};
  constexpr std::array<Memory, 4> kMemories{
      {{1, 0, -1}, {1, -0.5, -0.5}, {1, -1, 0}, {1, 0.5, -1.5}}};
  std::size_t settings = 0;
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (const std::int32_t microbatches : {1, 2, 3, 6, 13}) {
      for (const Costs& costs : kCosts) {
        for (const Memory& memory : kMemories) {
          for (const double limit : search.limits) {
            SCOPED_TRACE(fmt::format("{} ranks, {} microbatches, {} {} {} {}, B {}, limit {}",
                                     ranks, microbatches, costs.forward, costs.backward,
                                     costs.weight, costs.transfer, memory.backward, limit));
            look({.ranks = ranks,
                  .microbatches = microbatches,
                  .chunks = search.chunks,
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
std::size_t for_unequal_ranks(const Search& search,
                              const std::function<void(const Setting&)>& look) {
  constexpr std::array<Costs, 5> kCosts{
      {{10, 10, 10, 3}, {14, 15, 11, 3}, {3, 30, 9, 3}, {31, 2, 4, 3}, {0, 1, 20, 3}}};
  std::size_t settings = 0;
  for (std::size_t ranks = 2; ranks <= 6; ++ranks) {
    for (const std::int32_t microbatches : {1, 3, 7, 12}) {
      for (const double limit : search.limits_of_unequal_ranks) {
        for (std::size_t mix = 0; mix < 25; ++mix) {
          Setting setting{.ranks = static_cast<std::int32_t>(ranks),
                          .microbatches = microbatches,
                          .chunks = search.chunks,
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

class ZeroBubbleSearches : public ::testing::TestWithParam<Search> {};

INSTANTIATE_TEST_SUITE_P(All, ZeroBubbleSearches, ::testing::Values(kLinear, kV),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(ZeroBubbleSearches, KeepTheLawsOfOrdersAndTheLimit) {
  const std::size_t settings = for_every_setting(
      GetParam(), [](const Setting& setting) { expect_laws(GetParam(), setting); });
  EXPECT_EQ(settings, 6U * 5 * 6 * 4 * 7);
}

TEST_P(ZeroBubbleSearches, KeepTheLawsOfOrdersAndTheLimitWhereRanksDiffer) {
  const std::size_t settings = for_unequal_ranks(
      GetParam(), [](const Setting& setting) { expect_laws(GetParam(), setting); });
  EXPECT_EQ(settings, 5U * 4 * 5 * 25);
}

TEST_P(ZeroBubbleSearches, TakeEqualTimesOfEachRankForTimesOfAll) {
  for_every_setting(GetParam(), [](const Setting& setting) {
    Setting each = setting;
    each.rank_costs.assign(static_cast<std::size_t>(setting.ranks), setting.costs);
    each.costs = {.forward = 77, .transfer = 5};
    EXPECT_EQ(GetParam().lines(setting), GetParam().lines(each));
  });
}

TEST_P(ZeroBubbleSearches, LookAtRatiosOfTimesAlone) {
  for_every_setting(GetParam(), [](const Setting& setting) {
    Setting slower = setting;
    slower.costs = {.forward = setting.costs.forward * 4,
                    .backward = setting.costs.backward * 4,
                    .weight = setting.costs.weight * 4,
                    .transfer = setting.costs.transfer * 4};
    EXPECT_EQ(GetParam().lines(setting), GetParam().lines(slower));
  });
}

TEST_P(ZeroBubbleSearches, DecideInMillisecondsAsInMicroseconds) {
  const Search& search = GetParam();
  const Setting microseconds{.ranks = 24,
                             .microbatches = 96,
                             .costs = {6783, 6984, 5259, 758},
                             .memory_limit = 24.0 * search.chunks};
  Setting milliseconds = microseconds;
  milliseconds.costs = {6.783, 6.984, 5.259, 0.758};
  EXPECT_EQ(search.lines(microseconds), search.lines(milliseconds));
  milliseconds.rank_costs.assign(24, milliseconds.costs);
  EXPECT_EQ(search.lines(microseconds), search.lines(milliseconds));
}

struct Rounded {
  const Search& search;
  Costs costs;
  double limit_in_37ths;
  Memory memory;  ///< the fractions that stand for 37, -21 and -16
  double memory_limit;
};

TEST(ZeroBubbleSearch, ReachesALimitExactlyThoughFractionsAreRounded) {
  for (const Rounded& each :
       {Rounded{kLinear, {29718, 29444, 19927, 527}, 37 * 12, {1, -21 / 37.0, -16 / 37.0}, 12},
        Rounded{kV, {14859, 14722, 9963.5, 527}, 37 * 16, {0.5, -21 / 74.0, -16 / 74.0}, 8}}) {
    const Setting whole{.ranks = 8,
                        .microbatches = 24,
                        .costs = each.costs,
                        .memory = {37, -21, -16},
                        .memory_limit = each.limit_in_37ths};
    Setting rounded = whole;
    rounded.memory = each.memory;
    rounded.memory_limit = each.memory_limit;
    EXPECT_EQ(each.search.lines(whole), each.search.lines(rounded)) << each.search.name;
  }
}

struct ByHand {
  const Search& search;
  const char* what;
  Setting setting;
  Lines orders;
};

TEST(ZeroBubbleSearch, MakesOrdersThatCanBeFollowedByHand) {
  const std::vector<ByHand> cases{
      {kLinear,
       "it fills the memory of 1F1B",
       {.ranks = 3, .microbatches = 4, .memory_limit = 3},
       {"F0.0 F1.0 F2.0 B0.0 W0.0 F3.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0",
        "F0.0 F1.0 B0.0 F2.0 B1.0 W0.0 F3.0 B2.0 W1.0 B3.0 W2.0 W3.0",
        "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 F3.0 B3.0 W1.0 W2.0 W3.0"}},
      {kLinear,
       "it runs forwards ahead if memory is no limit",
       {.ranks = 3, .microbatches = 4},
       {"F0.0 F1.0 F2.0 F3.0 B0.0 W0.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0",
        "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 W0.0 B2.0 W1.0 B3.0 W2.0 W3.0",
        "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0 W0.0 W1.0 W2.0 W3.0"}},
      {kLinear,
       "it runs one microbatch after the other if one is all that fits",
       {.ranks = 2, .microbatches = 3, .memory_limit = 1},
       {"F0.0 B0.0 W0.0 F1.0 B1.0 W1.0 F2.0 B2.0 W2.0",
        "F0.0 B0.0 W0.0 F1.0 B1.0 W1.0 F2.0 B2.0 W2.0"}},
      {kLinear,
       "it gives a lone rank an order",
       {.microbatches = 2, .memory_limit = 2},
       {"F0.0 B0.0 F1.0 W0.0 B1.0 W1.0"}},
      {kLinear,
       "the last rank, half as fast, never waits; the W of the first fill its waits",
       {.ranks = 2,
        .microbatches = 3,
        .rank_costs = {{1, 1, 1, 0}, {2, 2, 2, 0}},
        .memory_limit = 2},
       {"F0.0 F1.0 B0.0 W0.0 F2.0 B1.0 W1.0 B2.0 W2.0",
        "F0.0 B0.0 F1.0 B1.0 W0.0 F2.0 B2.0 W1.0 W2.0"}},
      {kV,
       "it brings the first microbatch back before it fills the ranks",
       {.ranks = 2, .microbatches = 2, .memory_limit = 4},
       {"F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 W0.1 B1.0 W1.1 W0.0 W1.0",
        "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0"}},
      {kV,
       "it puts a W where memory demands one",
       {.ranks = 2, .microbatches = 3, .memory_limit = 4},
       {"F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 F2.1 B2.1 B1.0 W2.1 "
        "B2.0 W1.0 W2.0",
        "F0.0 F0.1 F1.0 F1.1 B0.1 W0.1 F2.0 B0.0 W0.0 F2.1 B1.1 B1.0 B2.1 B2.0 W1.1 "
        "W1.0 W2.1 W2.0"}},
      {kV,
       "it runs one microbatch after the other if one is all that fits",
       {.ranks = 2, .microbatches = 2, .memory_limit = 2},
       {"F0.0 F0.1 B0.1 W0.1 B0.0 F1.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0",
        "F0.0 F0.1 B0.1 B0.0 W0.1 W0.0 F1.0 F1.1 B1.1 B1.0 W1.1 W1.0"}},
      {kV,
       "it fits a forward of the next microbatch into the memory of one and a half",
       {.ranks = 2, .microbatches = 2, .memory_limit = 3},
       {"F0.0 F1.0 F0.1 B0.1 W0.1 B0.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0",
        "F0.0 F0.1 F1.0 B0.1 B0.0 W0.1 F1.1 W0.0 B1.1 B1.0 W1.1 W1.0"}},
      {kV,
       "it runs the Ws of a lone rank at once",
       {.microbatches = 2, .costs = {.transfer = 9}},
       {"F0.0 F0.1 B0.1 W0.1 F1.0 B0.0 W0.0 F1.1 B1.1 W1.1 B1.0 W1.0"}},
      {kV,
       "the last rank, half as fast, begins at 1 and never waits",
       {.ranks = 2,
        .microbatches = 2,
        .rank_costs = {{1, 1, 1, 0}, {2, 2, 2, 0}},
        .memory_limit = 4},
       {"F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0",
        "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0"}},
  };
  for (const ByHand& each : cases) {
    EXPECT_EQ(each.search.lines(each.setting), each.orders)
        << each.search.name << ": " << each.what;
  }
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
        EXPECT_EQ(kLinear.makespan(setting), setting.microbatches * work + (ranks - 1) * wait)
            << ranks << " ranks, " << setting.microbatches << " microbatches";
      }
    }
  }
}

TEST(ZeroBubbleSearch, NeverWaitsWithTwiceThatMemoryAndEqualTimes) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    const Setting setting{.ranks = ranks, .microbatches = 3 * ranks, .memory_limit = 2.0 * ranks};
    EXPECT_EQ(kLinear.makespan(setting), 3 * setting.microbatches + ranks - 1) << ranks << " ranks";
  }
}

TEST(ZeroBubbleSearch, NeverWaitsOnAVWithTheMemoryOfOneForwardOneBackwardAndEqualTimes) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    const Setting setting{.ranks = ranks, .microbatches = 2 * ranks, .memory_limit = 2.0 * ranks};
    EXPECT_EQ(kV.makespan(setting), 6 * setting.microbatches + ranks - 1) << ranks << " ranks";
  }
}

TEST(ZeroBubbleSearch, IsBusyMostOfTheTimeOnAVWithHalfThatMemory) {
  for (const std::int32_t ranks : {4, 6, 8}) {
    const Setting setting{
        .ranks = ranks, .microbatches = 4 * ranks, .memory_limit = static_cast<double>(ranks)};
    const double work = 6.0 * setting.microbatches;
    EXPECT_LT(kV.makespan(setting), 1.3 * work) << ranks << " ranks";
  }
}

struct Refused {
  const Search& search;
  Setting setting;
  const char* why;  ///< empty if the search accepts the setting
};

TEST(ZeroBubbleSearch, SaysWhyThereIsNoOrder) {
  const std::vector<Refused> cases{
      {kLinear, {.chunks = 2}, "zb holds one chunk a rank, not 2"},
      {kLinear, {.ranks = 0}, "zb needs one rank at least, not 0"},
      {kLinear, {.ranks = 1, .microbatches = 1, .chunks = 1}, ""},
      {kV, {.chunks = 1}, "zbv holds 2 chunks a rank, not 1"},
      {kV, {.chunks = 3}, "zbv holds 2 chunks a rank, not 3"},
      {kV, {.microbatches = 0, .chunks = 2}, "zbv needs one microbatch at least, not 0"},
      {kV, {.ranks = 1, .microbatches = 1, .chunks = 2}, ""},
      {kLinear,
       {.costs = {.weight = -1}},
       "zb needs times that are finite and not negative, not -1"},
      {kLinear,
       {.ranks = 2, .rank_costs = {{}}},
       "zb needs times of each of the 2 ranks, not of 1"},
      {kLinear, {.costs = {0, 0, 0, 0}}, ""},
      {kV,
       {.chunks = 2, .costs = {.backward = -1}},
       "zbv needs times that are finite and not negative, not -1"},
      {kV,
       {.ranks = 2, .chunks = 2, .rank_costs = {{}}},
       "zbv needs times of each of the 2 ranks, not of 1"},
      {kLinear,
       {.memory = {1, -2, 1}},
       "zb needs a memory of 0 at least after F and after B, not 1 and -1"},
      {kLinear,
       {.memory = {-1, 1, 0}},
       "zb needs a memory of 0 at least after F and after B, not -1 and 0"},
      {kLinear,
       {.memory = {1, -0.5, -0.25}},
       "zb needs a W that gives back all that F and B hold, 0.5, not 0.25"},
      {kLinear, {.memory = {1, -0.1, -0.9}}, ""},
      {kLinear, {.memory = {0.3, -0.1 - 0.2, 0}}, ""},
      {kLinear, {.memory = {0, 0, 0}}, ""},
      {kV,
       {.chunks = 2, .memory = {1, -0.5, -0.25}},
       "zbv needs a W that gives back all that F and B hold, 0.5, not 0.25"},
      {kLinear,
       {.memory = {1, -0.5, -0.5}, .memory_limit = 0.75},
       "no order holds less than 1 on a rank, and the limit is 0.75"},
      {kLinear, {.memory = {1, -0.5, -0.5}, .memory_limit = 1}, ""},
      {kLinear,
       {.memory = {1, 0.5, -1.5}, .memory_limit = 1.25},
       "no order holds less than 1.5 on a rank, and the limit is 1.25"},
      {kLinear, {.memory = {1, 0.5, -1.5}, .memory_limit = 1.5}, ""},
      {kLinear,
       {.memory_limit = std::numeric_limits<double>::quiet_NaN()},
       "no order holds less than 1 on a rank, and the limit is nan"},
      {kV,
       {.chunks = 2, .memory_limit = 1.5},
       "no order holds less than 2 on a rank, and the limit is 1.5"},
      {kV, {.chunks = 2, .memory_limit = 2}, ""},
      {kV,
       {.chunks = 2, .memory = {1, 0.5, -1.5}, .memory_limit = 2.25},
       "no order holds less than 2.5 on a rank, and the limit is 2.25"},
      {kV, {.chunks = 2, .memory = {1, 0.5, -1.5}, .memory_limit = 2.5}, ""},
  };
  for (const Refused& each : cases) EXPECT_EQ(refusal(each.search, each.setting), each.why);
}

}  // namespace
}  // namespace capo::schedules
