// Bounds against orders that are known to be optimal, and by hand.

#include "sim/simulation.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using simulated::costs;
using simulated::simulate_named;
using simulated::simulate_text;

TEST(Bounds, ZeroBubbleH1IsOptimalWithItsMemory) {
  const auto s = simulate_named({.name = "zb-h1", .ranks = 4, .microbatches = 8},
                                {.costs = costs("f=12,b=13,w=9,comm=1")});
  EXPECT_EQ((*s)->bounds().makespan.value, (*s)->makespan());
  EXPECT_EQ((*s)->bounds().span.value, (*s)->span());
  EXPECT_EQ((*s)->bounds().makespan.by, "L1");
  EXPECT_EQ((*s)->bounds().memory, 4);
}

TEST(Bounds, MoreMemoryIsALowerBound) {
  const auto at = [](double limit) {
    const auto s =
        simulate_named({.name = "zb-h1", .ranks = 4, .microbatches = 8}, {.memory_limit = limit});
    return (*s)->bounds().makespan.value;
  };
  EXPECT_GT(at(2), at(4));
  EXPECT_GE(at(4), at(7));
  // The work of a rank, and the way of one microbatch to the last rank: 24 + 3.
  EXPECT_EQ(at(1000), 27);
}

// A microbatch keeps half of what its forward took until its weight gradient, and two fifths are
// left for others: each must be done before the next one begins, and a rank waits 4 for each
// backward.
TEST(Bounds, MemoryThatHoldsNoMicrobatchOffersNoWork) {
  const auto s = simulate_text(
      "capo 1\nplacement loop\nranks 3\n"
      "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
      "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
      "rank 2: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n",
      {.costs = costs("f=1,b=1,w=1"),
       .memory = MemoryChange{.forward = 1, .backward = -0.5, .weight = -0.5},
       .memory_limit = 1.4});
  EXPECT_EQ((*s)->bounds().makespan.value, 14);
  EXPECT_EQ((*s)->bounds().makespan.by, "L1");
  EXPECT_EQ((*s)->makespan(), 14);
}

// Rounding alone is left, and however little a weight gradient keeps, no microbatch fits into it.
TEST(Bounds, RoundingOffersNoWork) {
  const auto s = simulate_named({.name = "zb", .ranks = 5, .microbatches = 2, .memory_limit = 1},
                                {.costs = costs("f=3,b=1,w=6"),
                                 .memory = MemoryChange{.backward = -0.9, .weight = -0.1},
                                 .memory_limit = 1});
  EXPECT_EQ((*s)->bounds().makespan.value, 52);
}

TEST(Bounds, OneMicrobatchTakesItsWay) {
  const auto s =
      simulate_text("capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n",
                    {.costs = costs("f=2,b=3,w=1,comm=5", "r1:f=4")});
  // 2 + 5 + 4 + 3 + 5 + 3; weight gradients could wait.
  EXPECT_EQ((*s)->bounds().makespan.value, 22);
  EXPECT_EQ((*s)->bounds().makespan.by, "path");
}

TEST(Bounds, TheBusiestRankOfUnequalOnes) {
  const auto s = simulate_named({.name = "1f1b", .ranks = 4, .microbatches = 20},
                                {.costs = costs("f=1,b=1,w=1", "r3:f=10")});
  EXPECT_EQ((*s)->bounds().makespan.value, 3 + 20 * 12);
  EXPECT_EQ((*s)->bounds().makespan.by, "work");
  EXPECT_EQ((*s)->bounds().makespan.rank, 3);
  EXPECT_EQ((*s)->bounds().span.value, 20 * 12);
}

TEST(Bounds, OverlappedCompositesMayTakeLess) {
  const auto s = simulate_named({.name = "dualpipev", .ranks = 4, .microbatches = 16},
                                {.costs = costs("overlap=0.8")});
  EXPECT_LE((*s)->bounds().makespan.value, (*s)->makespan());
  EXPECT_LE((*s)->bounds().span.value, (*s)->span());
}

TEST(Bounds, CallsOfSeveralWeightGradientsMayTakeLess) {
  constexpr const char* kOrder =
      "capo 1\nmicrobatches 3\nplacement chain\nranks 1\n"
      "rank 0: F1.0 F1.1 F1.2 B1.0 B1.1 B1.2 ";
  const auto bound = [&](const std::string& weights, const char* price) {
    const auto s = simulate_text(kOrder + weights + "\n", {.costs = costs(price)});
    EXPECT_LE((*s)->bounds().makespan.value, (*s)->makespan() + 1e-9);
    return (*s)->bounds().makespan.value;
  };
  EXPECT_EQ(bound("W1.0 W1.1 W1.2", "f=1,b=1,w=4,fuse=0.5"), 18);
  EXPECT_NEAR(bound("(W1.0 W1.1 W1.2)", "f=1,b=1,w=4,fuse=0.5"), 6 + 4 + 2 + 2, 1e-9);
  EXPECT_NEAR(bound("(W1.0 W1.1) W1.2", "f=1,b=1,w=4,fuse=0.5"), 6 + 3 * 3, 1e-9)
      << "all three could be in calls of two";
  EXPECT_EQ(bound("(W1.0 W1.1 W1.2)", "f=1,b=1,w=4,fuse=2"), 18) << "nobody has to fuse them";
}

}  // namespace
}  // namespace capo
