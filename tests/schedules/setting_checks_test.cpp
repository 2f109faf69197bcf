// Settings of which no schedule can be made, and the words for it.

#include "schedules/setting_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace capo::schedules {
namespace {

TEST(SettingChecks, OneOfEachIsEnough) {
  EXPECT_EQ(refuse_counts("x", {}), std::nullopt);
  EXPECT_EQ(refuse_counts("x", {}, 1), std::nullopt);
}

TEST(SettingChecks, WithoutAnyThereIsNoSchedule) {
  EXPECT_EQ(refuse_counts("x", {.ranks = 0}), "x needs one rank at least, not 0");
  EXPECT_EQ(refuse_counts("x", {.microbatches = -1}), "x needs one microbatch at least, not -1");
  EXPECT_EQ(refuse_counts("x", {.chunks = 0}), "x needs one chunk a rank at least, not 0");
}

TEST(SettingChecks, AScheduleMayWantExactlySoManyChunks) {
  EXPECT_EQ(refuse_counts("x", {.chunks = 2}, 2), std::nullopt);
  EXPECT_EQ(refuse_counts("x", {.chunks = 3}, 2), "x holds 2 chunks a rank, not 3");
  EXPECT_EQ(refuse_counts("x", {.chunks = 2}, 1), "x holds one chunk a rank, not 2");
  EXPECT_EQ(refuse_counts("x", {.chunks = 0}, 2), "x needs one chunk a rank at least, not 0");
}

TEST(SettingChecks, ThereIsALargestSchedule) {
  EXPECT_EQ(refuse_counts("x", {.ranks = 1000, .microbatches = 10000, .chunks = 10}), std::nullopt);
  EXPECT_EQ(refuse_counts("x", {.ranks = 1000, .microbatches = 10001, .chunks = 10}),
            "x would have more than 100000000 forwards: 1000 ranks, 10 chunks, 10001 microbatches");
  constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();
  EXPECT_NE(refuse_counts("x", {.ranks = kHuge, .microbatches = kHuge, .chunks = kHuge}),
            std::nullopt);
}

TEST(SettingChecks, TimesAreFiniteAndNotNegative) {
  EXPECT_EQ(refuse_costs("x", {.costs = {0, 0, 0, 0}}), std::nullopt);
  EXPECT_EQ(refuse_costs("x", {.costs = {.backward = -0.5}}),
            "x needs times that are finite and not negative, not -0.5");
  EXPECT_EQ(refuse_costs("x", {.costs = {.transfer = HUGE_VAL}}),
            "x needs times that are finite and not negative, not inf");
  EXPECT_NE(refuse_costs("x", {.costs = {.weight = std::nan("")}}), std::nullopt);
}

TEST(SettingChecks, WhereRanksDifferEachHasTimes) {
  EXPECT_EQ(refuse_costs("x", {.ranks = 2, .rank_costs = {{}, {}}}), std::nullopt);
  EXPECT_EQ(refuse_costs("x", {.ranks = 3, .rank_costs = {{}, {}}}),
            "x needs times of each of the 3 ranks, not of 2");
  EXPECT_EQ(refuse_costs("x", {.ranks = 2, .rank_costs = {{}, {.weight = -1}}}),
            "x needs times that are finite and not negative, not -1");
}

TEST(SettingChecks, ASearchMayKnowOnlyTimesOfAllRanks) {
  EXPECT_EQ(refuse_rank_costs("x", {.ranks = 2}), std::nullopt);
  EXPECT_EQ(refuse_rank_costs("x", {.ranks = 2, .rank_costs = {{}, {}}}),
            "x is made for ranks that all take the same times");
}

}  // namespace
}  // namespace capo::schedules
