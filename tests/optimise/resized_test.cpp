#include "optimise/periods.h"

#include "optimise/construct.h"
#include "optimise/evaluation.h"
#include "optimise/search.h"
#include "tests/optimise/problems.h"

#include <gtest/gtest.h>

#include <string>

namespace capo::optimise {
namespace {

Problem line(std::int32_t microbatches, double limit = 3) {
  SimulationOptions options{.memory_limit = limit};
  options.costs = simulated::costs("f=3,b=4,w=2,comm=1");
  return *problem_of({.ranks = 3, .microbatches = microbatches}, options);
}

TEST(Resized, RepeatsWhatRunsInTheMiddle) {
  const Problem few = line(24);
  const Problem many = line(240);
  const Orders orders = *construct(few, {});
  const auto longer = lengthened(few, orders, many);
  ASSERT_TRUE(longer.has_value());
  const Figures of_few = *evaluate(few, orders);
  const Figures of_many = *evaluate(many, *longer);
  EXPECT_TRUE(fits(many, of_many));
  EXPECT_EQ(of_many.highest_peak(), of_few.highest_peak());
  // Rules that make all of it from nothing do the same in the middle.
  const double from_nothing = evaluate(many, *construct(many, {}))->makespan;
  EXPECT_LE(of_many.makespan, 1.02 * from_nothing);
}

TEST(Resized, ShortensWhatItHasMadeLonger) {
  const Problem few = line(24);
  const Problem many = line(96);
  const Orders orders = *construct(few, {});
  const auto longer = lengthened(few, orders, many);
  ASSERT_TRUE(longer.has_value());
  const auto shorter = resized(many, *longer, few, 72, 0.1);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(evaluate(few, *shorter)->makespan, evaluate(few, orders)->makespan);
}

TEST(Resized, TellsWhereThereIsNoPartToRepeat) {
  // No part has one of each where all forwards come first and then all backwards.
  const Problem few = line(8, 8);
  EXPECT_FALSE(lengthened(few, all_forwards_first(few), line(10, 8)).has_value());
}

TEST(Resized, ShortStepsHaveEnough) {
  EXPECT_FALSE(shortened(line(24), 16).has_value());
  const auto shorter = shortened(line(1000), 16);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_GE(shorter->frame.microbatches, 16);
  EXPECT_LT(shorter->frame.microbatches, 16 + 24);
  EXPECT_EQ((1000 - shorter->frame.microbatches) % 24, 0);
}

// The search finds what is as good for each of twenty times as many microbatches.
TEST(Resized, ServesASearchOfManyMicrobatches) {
  const auto found_of = [](std::int32_t microbatches) {
    const Problem problem = line(microbatches, 2);
    const auto found = search(
        problem, [] { return std::vector<Start>{}; }, {.moves = 300'000}, [](const Found&) {});
    EXPECT_TRUE(found.has_value());
    EXPECT_TRUE(fits(problem, found->figures));
    EXPECT_EQ(*evaluate(problem, found->orders), found->figures);
    return found->figures.makespan;
  };
  const double of_200 = found_of(200);
  const double of_4000 = found_of(4000);
  EXPECT_NEAR(of_4000 / 4000, of_200 / 200, 0.03 * of_200 / 200);
}

}  // namespace
}  // namespace capo::optimise
