// Which places a sample takes, what it costs, and how far off a single element is.

#include "run/reference/sampled_reference.h"
#include "run/reference/compare.h"
#include "run/reference/sampled_heads.h"
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

// 4 heads and 2 kv heads of 3 columns, hidden 2: rows of queries, keys and values in the whole
// first weight are 0 to 11, 12 to 17 and 18 to 23.
TEST(SampledHeads, AreThePartsOfTheWeightsOfOneKvHead) {
  const LayerShape shape{.kind = ModuleKind::Attention,
                         .tokens = 8,
                         .hidden = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 3,
                         .sequence = 4};
  const SampledHeads heads(shape, 1, {1, 4, 5});
  const auto places = [](const std::vector<Slice>& slices) {
    std::vector<std::int64_t> all;
    for (const Slice& slice : slices) {
      for (std::int64_t i = 0; i < slice.count; ++i) all.push_back(slice.first + i * slice.step);
    }
    return all;
  };
  using Places = std::vector<std::int64_t>;
  const reference::LayerForm form = heads.form({.kind = shape.kind, .heads = 4, .kv_heads = 2});
  EXPECT_EQ(form.heads, 2);
  EXPECT_EQ(form.kv_heads, 1);
  EXPECT_EQ(places(heads.weights(Role::FirstBias)),
            (Places{6, 7, 8, 9, 10, 11, 15, 16, 17, 21, 22, 23}));
  EXPECT_EQ(places(heads.weights(Role::Second)),
            (Places{6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(places(heads.weights(Role::SecondBias)), (Places{0, 1}));
  // Columns 1 and 4 are the second of their heads, and so are their key's and their value's.
  EXPECT_EQ(places(heads.looked_at(Role::FirstBias, true)), (Places{7, 10, 11, 16, 17, 22, 23}));
  EXPECT_EQ(heads.places(Role::FirstBias, true), (Places{1, 4, 5, 7, 8, 10, 11}));
  EXPECT_EQ(places(heads.looked_at(Role::First, false)),
            (Places{14, 15, 20, 21, 22, 23, 32, 33, 34, 35, 44, 45, 46, 47}));
  EXPECT_EQ(heads.places(Role::First, false),
            (Places{2, 3, 8, 9, 10, 11, 14, 15, 16, 17, 20, 21, 22, 23}));
  EXPECT_EQ(places(heads.looked_at(Role::Second, true)), (Places{7, 10, 11, 19, 22, 23}));
  EXPECT_EQ(heads.places(Role::Second, true), (Places{1, 4, 5, 7, 10, 11}));
  EXPECT_EQ(places(heads.looked_at(Role::SecondBias, true)), (Places{0, 1}));
  EXPECT_TRUE(heads.looked_at(Role::SecondBias, false).empty());
  EXPECT_TRUE(heads.places(Role::SecondBias, false).empty());
}

TEST(SampledHeads, PartsAreAllOfThemWhereThereIsRoom) {
  const FloatSample sample{.count = 8};
  EXPECT_EQ(parts_of_sample(sample, 8, 4, 0), (std::vector<std::int64_t>{0, 1, 2, 3}));
  std::set<std::int64_t> met;
  for (std::uint64_t stream = 0; stream < 100; ++stream) {
    const auto some = parts_of_sample(sample, 9, 3, stream);
    ASSERT_EQ(some.size(), 1U);
    met.insert(some[0]);
  }
  EXPECT_EQ(met, (std::set<std::int64_t>{0, 1, 2}));
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
  // An attention's weights are 32 x 16 and 16 x 16; a row of a sequence of four attends to half of
  // it. The sample is one of its two sequences and one of its two kv heads.
  const double row = 768 + 768;
  const double attended = 3.5 * 4 * 16;
  const double token = 2 * 512 + 3 * 256 + attended;
  EXPECT_EQ(work(ModuleKind::Attention, 3),
            2 * (8 * (row + attended) + 768 + (768 + 2 * 8 * token) / 2));
  EXPECT_EQ(work(ModuleKind::Attention, 16),
            2 * (16 * (row + attended) + 768 + 768 + 2 * 8 * token));
}

}  // namespace
}  // namespace capo::run
