// Hanayo by list scheduling: an order written by hand, the laws, and how near it comes to the
// paper's bubble ratio.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

TEST(Hanayo, AtATurnTheMicrobatchStaysAndBackwardsComeFirst) {
  const auto orders = hanayo({.ranks = 2, .microbatches = 2, .chunks = 2}).value();
  EXPECT_EQ(text(orders), (Lines{"F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0",
                                 "F0.0 F0.1 F1.0 F1.1 BW0.1 BW0.0 BW1.1 BW1.0"}));
}

TEST(Hanayo, OneRankRunsOneMicrobatchAfterTheOther) {
  EXPECT_EQ(text(hanayo({.ranks = 1, .microbatches = 2, .chunks = 2}).value()),
            (Lines{"F0.0 F0.1 BW0.1 BW0.0 F1.0 F1.1 BW1.1 BW1.0"}));
}

TEST(Hanayo, TheOrderFollowsTheCosts) {
  const auto with = [](double transfer) {
    return hanayo({.ranks = 4, .microbatches = 8, .chunks = 4, .costs = {.transfer = transfer}})
        .value();
  };
  EXPECT_NE(with(0), with(5));
  EXPECT_EQ(with(5), with(5));
}

TEST(Hanayo, TheOrderFollowsTheCostsOfEachRank) {
  const Setting same = {.ranks = 4, .microbatches = 8, .chunks = 4};
  Setting each = same;
  each.rank_costs.assign(4, {});
  EXPECT_EQ(hanayo(each).value(), hanayo(same).value());
  each.rank_costs.back().forward = 5;
  EXPECT_NE(hanayo(each).value(), hanayo(same).value());
  EXPECT_EQ(broken_law(hanayo(each).value(), wave(each)), std::nullopt);
}

TEST(Hanayo, AsksForWholeWavesAndCostsThatAreTimes) {
  EXPECT_EQ(hanayo({.ranks = 2, .microbatches = 2, .chunks = 3}).error(),
            "hanayo holds two chunks a rank for every wave, not 3");
  EXPECT_EQ(hanayo({.ranks = 0, .chunks = 2}).error(), "hanayo needs one rank at least, not 0");
  EXPECT_EQ(hanayo({.chunks = 2, .costs = {.weight = -1}}).error(),
            "hanayo needs times that are finite and not negative, not -1");
  EXPECT_FALSE(
      hanayo({.chunks = 2, .costs = {.forward = std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(hanayo({.chunks = 2, .costs = {.transfer = std::nan("")}}));
  EXPECT_TRUE(hanayo({.chunks = 2, .costs = {.forward = 0, .backward = 0, .weight = 0}}));
}

TEST(Hanayo, EveryOrderIsWholeAndFinishes) {
  const Costs costs[] = {
      {}, {.backward = 0, .weight = 0}, {.forward = 0.5, .backward = 3, .transfer = 0.25}};
  for (const Costs& cost : costs) {
    for (std::int32_t ranks = 1; ranks <= 5; ++ranks) {
      for (std::int32_t microbatches = 1; microbatches <= 11; microbatches += 2) {
        for (std::int32_t chunks = 2; chunks <= 6; chunks += 2) {
          const Setting setting = {
              .ranks = ranks, .microbatches = microbatches, .chunks = chunks, .costs = cost};
          EXPECT_EQ(broken_law(hanayo(setting).value(), wave(setting)), std::nullopt)
              << ranks << " " << microbatches << " " << chunks;
        }
      }
    }
  }
}

/// The bubble ratio over the paper's, for a microbatch a rank and backwards twice as long as
/// forwards.
double over_paper(std::int32_t ranks, std::int32_t waves) {
  const Setting setting = {.ranks = ranks, .microbatches = ranks, .chunks = 2 * waves};
  const auto orders = hanayo(setting).value();
  for (const std::int64_t held : most_held(orders)) EXPECT_LE(held, ranks * setting.chunks);
  const double paper = (2.0 * ranks - 2) / (3.0 * ranks * waves + ranks - 1);
  return (1 - 3.0 * ranks * setting.chunks / makespan(orders, wave(setting))) / paper;
}

TEST(Hanayo, TheBubbleIsNearThePapers) {
  for (const std::int32_t ranks : {2, 3, 4, 6, 8, 16}) {
    EXPECT_LT(over_paper(ranks, 1), 0.88);
    for (const std::int32_t waves : {2, 3, 4, 6, 8}) {
      const double ratio = over_paper(ranks, waves);
      EXPECT_GT(ratio, 0.90) << ranks << " " << waves;
      EXPECT_LT(ratio, 1.07) << ranks << " " << waves;
    }
  }
}

}  // namespace
}  // namespace capo::schedules
