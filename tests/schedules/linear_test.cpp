// GPipe, 1F1B, ZB-H1 and ZB-H2: orders small enough to have been written by hand, and the laws and
// closed forms of each over a grid of ranks and microbatches.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;
using Generator = Result<PublishedOrders, std::string> (*)(const Setting&);

constexpr std::pair<const char*, Generator> kGenerators[] = {
    {"gpipe", gpipe}, {"1f1b", one_f_one_b}, {"zb-h1", zero_bubble_h1}, {"zb-h2", zero_bubble_h2}};

Lines lines(Generator generator, std::int32_t ranks, std::int32_t microbatches) {
  return text(generator({.ranks = ranks, .microbatches = microbatches}).value());
}

TEST(Linear, GPipeRunsAllForwardsThenAllBackwards) {
  EXPECT_EQ(lines(gpipe, 2, 3),
            (Lines{"F0.0 F1.0 F2.0 BW0.0 BW1.0 BW2.0", "F0.0 F1.0 F2.0 BW0.0 BW1.0 BW2.0"}));
}

TEST(Linear, OneFOneBRunsAForwardAheadForEveryRankBelow) {
  EXPECT_EQ(lines(one_f_one_b, 3, 4), (Lines{"F0.0 F1.0 F2.0 BW0.0 F3.0 BW1.0 BW2.0 BW3.0",
                                             "F0.0 F1.0 BW0.0 F2.0 BW1.0 F3.0 BW2.0 BW3.0",
                                             "F0.0 BW0.0 F1.0 BW1.0 F2.0 BW2.0 F3.0 BW3.0"}));
}

TEST(Linear, H1KeepsAWeightHalfBackForEveryRankAbove) {
  EXPECT_EQ(lines(zero_bubble_h1, 3, 4),
            (Lines{"F0.0 F1.0 F2.0 B0.0 W0.0 F3.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0",
                   "F0.0 F1.0 B0.0 F2.0 B1.0 W0.0 F3.0 B2.0 W1.0 B3.0 W2.0 W3.0",
                   "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 F3.0 B3.0 W1.0 W2.0 W3.0"}));
}

TEST(Linear, H2RunsTwiceAsFarAheadAndKeepsTwiceAsManyBack) {
  EXPECT_EQ(lines(zero_bubble_h2, 2, 4),
            (Lines{"F0.0 F1.0 F2.0 B0.0 W0.0 F3.0 B1.0 W1.0 B2.0 W2.0 B3.0 W3.0",
                   "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 W0.0 F3.0 B3.0 W1.0 W2.0 W3.0"}));
}

TEST(Linear, WithFewMicrobatchesAllForwardsComeFirst) {
  EXPECT_EQ(lines(one_f_one_b, 4, 1), Lines(4, "F0.0 BW0.0"));
  EXPECT_EQ(lines(zero_bubble_h2, 3, 2),
            (Lines{"F0.0 F1.0 B0.0 W0.0 B1.0 W1.0", "F0.0 F1.0 B0.0 B1.0 W0.0 W1.0",
                   "F0.0 B0.0 F1.0 B1.0 W0.0 W1.0"}));
}

TEST(Linear, ARankHoldsOneChunk) {
  for (const auto& [name, generator] : kGenerators) {
    const auto orders = generator({.ranks = 2, .microbatches = 2, .chunks = 2});
    ASSERT_FALSE(orders) << name;
    EXPECT_EQ(orders.error(), std::string(name) + " holds one chunk a rank, not 2");
    EXPECT_FALSE(generator({.ranks = 0})) << name;
    EXPECT_FALSE(generator({.microbatches = 0})) << name;
  }
}

TEST(Linear, EveryOrderIsWholeAndFinishes) {
  for (const auto& [name, generator] : kGenerators) {
    for (std::int32_t ranks = 1; ranks <= 7; ++ranks) {
      for (std::int32_t microbatches = 1; microbatches <= 16; ++microbatches) {
        const Setting setting = {.ranks = ranks, .microbatches = microbatches};
        const PublishedOrders orders = generator(setting).value();
        ASSERT_EQ(orders.size(), static_cast<std::size_t>(ranks));
        EXPECT_EQ(broken_law(orders, loop(setting)), std::nullopt)
            << name << " " << ranks << " " << microbatches;
      }
    }
  }
}

TEST(Linear, ARankHoldsWhatThePapersSay) {
  for (std::int32_t ranks = 1; ranks <= 7; ++ranks) {
    for (std::int32_t microbatches = 1; microbatches <= 16; ++microbatches) {
      const Setting setting = {.ranks = ranks, .microbatches = microbatches};
      const auto held = [&](Generator generator) { return most_held(generator(setting).value()); };
      const auto all = [&](std::int64_t count) {
        return std::vector<std::int64_t>(static_cast<std::size_t>(ranks),
                                         std::min<std::int64_t>(count, microbatches));
      };
      EXPECT_EQ(held(gpipe), all(microbatches));
      EXPECT_EQ(held(zero_bubble_h1), all(ranks));
      EXPECT_EQ(held(zero_bubble_h2), all(2 * ranks - 1));
      const auto one_f_one_b_held = held(one_f_one_b);
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(one_f_one_b_held[static_cast<std::size_t>(rank)],
                  std::min(ranks - rank, microbatches));
      }
    }
  }
}

/// The time that the last rank to finish has waited, with free transfers and all tasks equally
/// long.
double bubble(Generator generator, const Setting& setting) {
  return makespan(generator(setting).value(), loop(setting)) - 3.0 * setting.microbatches;
}

TEST(Linear, BubblesAreThoseOfTheClosedForms) {
  for (std::int32_t ranks = 1; ranks <= 7; ++ranks) {
    for (std::int32_t microbatches = 2 * ranks; microbatches <= 3 * ranks; ++microbatches) {
      const Setting setting = {.ranks = ranks, .microbatches = microbatches};
      const double hops = ranks - 1;
      EXPECT_EQ(bubble(gpipe, setting), 3 * hops);
      EXPECT_EQ(bubble(one_f_one_b, setting), 3 * hops);
      EXPECT_EQ(bubble(zero_bubble_h1, setting), hops);
      EXPECT_EQ(bubble(zero_bubble_h2, setting), hops);  // all of it before a rank's first forward
    }
  }
}

}  // namespace
}  // namespace capo::schedules
