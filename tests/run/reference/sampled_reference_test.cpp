// Which places a sample takes, what it costs, and how far off a single element is.

#include "run/reference/sampled_reference.h"
#include "run/reference/compare.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace capo::run {
namespace {

TEST(FloatSample, TakesAllPlacesIfThereAreNoMore) {
  const FloatSample sample{.count = 4};
  EXPECT_EQ(sample.of(4, 0), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(sample.of(1, 0), (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(sample.of(0, 0).empty());
}

TEST(FloatSample, TakesOneOfEachEqualPart) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto places = FloatSample{.seed = seed, .count = 7}.of(100, seed);
    ASSERT_EQ(places.size(), 7U);
    for (std::int64_t part = 0; part < 7; ++part) {
      EXPECT_GE(places[static_cast<std::size_t>(part)], part * 100 / 7);
      EXPECT_LT(places[static_cast<std::size_t>(part)], (part + 1) * 100 / 7);
    }
  }
}

TEST(FloatSample, IsTheSameForASeedAndStreamAndComesToEveryPlace) {
  std::set<std::int64_t> met;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const FloatSample sample{.seed = seed, .count = 2};
    EXPECT_EQ(sample.of(10, 1), sample.of(10, 1));
    for (const std::int64_t place : sample.of(10, 1)) met.insert(place);
  }
  EXPECT_EQ(met.size(), 10U);
  EXPECT_NE((FloatSample{.seed = 1, .count = 2}.of(1000, 1)),
            (FloatSample{.seed = 1, .count = 2}.of(1000, 2)));
}

// The last element is as small as one that cancels: it counts as the others of its row do.
TEST(WorstElement, IsRelativeToItselfOrItsRow) {
  const std::vector<double> should{3, 4, 0, 0};
  EXPECT_EQ(worst_element(should, std::vector<float>{3, 4, 0, 0}, should, 2), 0);
  EXPECT_DOUBLE_EQ(worst_element(should, std::vector<float>{3, 5, 0, 0}, should, 2), 0.25);
  EXPECT_DOUBLE_EQ(worst_element(should, std::vector<float>{2.5, 4, 0, 0}, should, 2),
                   0.5 / std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(worst_element(should, std::vector<float>{3, 4, 1, 0}, should, 4), 1 / 2.5);
  EXPECT_EQ(worst_element(should, std::vector<float>{3, 4, 1, 0}, should, 2),
            std::numeric_limits<double>::infinity());
}

TEST(WorstElement, IsInfiniteOfANaNAndLeavesOutWhatIsFiniteInNeither) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const std::vector<double> should{1, infinite};
  EXPECT_EQ(worst_element(should, std::vector<float>{1, nan}, should, 2), 0);
  EXPECT_EQ(worst_element(should, std::vector<float>{nan, 1}, should, 2), infinite);
}

// Two layers of 8 tokens, 16 x 16, two microbatches; three groups where there are any.
TEST(SampledWork, IsBoundedByTheSampleAndNotByTheTokens) {
  const auto work = [](ModuleKind kind, std::int64_t samples) {
    const VerifiedPlan plan = verified(
        typed("capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n"),
        every_layer(small(kind)));
    return sampled_work(StepLayers::of(plan.step()).value(), 2, samples);
  };
  const double linear = 2 * ((2 * 6 + 1) * 256.0 + 3 * 2 * 8 * 16 * 2);
  EXPECT_EQ(work(ModuleKind::Linear, 3), linear);
  const double mlp = 2 * ((2 * 6 + 3) * 768.0 + 3 * 7 * 8 * 16 * 2);
  EXPECT_EQ(work(ModuleKind::GroupedMlp, 3), mlp);
  const double eight_columns_of_three_groups = 2 * (2 * 2 * 8 + 3) * 768.0 + 2 * 4 * 7 * 8 * 16 * 2;
  EXPECT_EQ(work(ModuleKind::GroupedMlp, 8), eight_columns_of_three_groups);
  EXPECT_EQ(work(ModuleKind::Linear, 1000), work(ModuleKind::Linear, 16))
      << "no more than there are";
}

}  // namespace
}  // namespace capo::run
