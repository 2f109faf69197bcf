// Values on the edge of a rounding, by hand: 1 + 2^-8 lies in the middle between 1 and 1 + 2^-7,
// which are neighbours in bf16.

#include "run/reference/other_ways.h"
#include "run/reference/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace capo::run::reference {
namespace {

using Values = std::vector<double>;

constexpr double kBound = 5e-3;
constexpr double kNext = 1 + 0x1p-7;

std::vector<float> narrow(const Values& values) {
  return {values.begin(), values.end()};
}

TEST(RoundedOtherWay, IsTheSecondNearest) {
  EXPECT_EQ(rounded(1 + 0x1p-8, DataType::Bf16), 1);
  EXPECT_EQ(rounded_other_way(1 + 0x1p-8, DataType::Bf16), kNext);
  EXPECT_EQ(rounded_other_way(1 + 0x1p-9, DataType::Bf16), kNext);
  EXPECT_EQ(rounded_other_way(kNext - 0x1p-9, DataType::Bf16), 1);
  EXPECT_EQ(rounded_other_way(-1 - 0x1p-8, DataType::Bf16), -kNext);
  EXPECT_EQ(rounded_other_way(1 - 0x1p-10, DataType::Bf16), 1 - 0x1p-8) << "steps are half below 1";
  EXPECT_EQ(rounded_other_way(1 + 0x1p-11, DataType::Fp16), 1 + 0x1p-10);
  EXPECT_EQ(rounded_other_way(kNext, DataType::Bf16), kNext) << "exact";
  EXPECT_EQ(rounded_other_way(0, DataType::Bf16), 0);
}

// One number, the sum of three.
class Sum : public ::testing::Test {
 protected:
  explicit Sum() = default;

  [[nodiscard]] std::vector<Edge> ways(const Values& input, double is) const {
    const Values should = forward(form, weights, {}, input, Rounding::AsStored).output;
    const std::vector<float> made = narrow({is});
    const LayerSide side;
    return other_ways({.form = form, .weights = weights, .side = side, .input = input}, {},
                      {should, made, should, kBound});
  }

  LayerForm form{.tokens = 1, .hidden = 3, .ffn = 1};
  LayerWeights weights{.first = {1, 1, 1}};
  std::vector<Edge> edge{{Place::First, 0, 0}};
};

TEST_F(Sum, OnTheEdgeGoesEitherWay) {
  EXPECT_EQ(ways({1, 0x1p-8, 0}, kNext), edge);
}

TEST_F(Sum, NearTheEdgeIsWithinFourErrorsOfAnAddition) {
  EXPECT_EQ(ways({1, 0x1p-8, -0x1p-22}, kNext), edge);
  EXPECT_TRUE(ways({1, 0x1p-8, -0x1p-20}, kNext).empty());
}

TEST_F(Sum, TermsThatCancelMakeTheirSumUncertain) {
  weights.first = {1, 1, -1};
  EXPECT_TRUE(ways({1, 0x1p-8, 0x1p-20}, kNext).empty());
  form.hidden = 5;
  weights.first = {1, 1, -1, 1, -1};
  EXPECT_EQ(ways({1, 0x1p-8, 0x1p-20, 8, 8}, kNext), edge);
}

TEST_F(Sum, AnErrorThatNoRoundingMakesStays) {
  EXPECT_TRUE(ways({1, 0, 0}, kNext).empty());
  EXPECT_TRUE(ways({1, 0x1p-8, 0}, 1 - 0x1p-7).empty()) << "on the side without an edge";
}

TEST_F(Sum, WithinItsBoundNothingIsLookedFor) {
  weights.first = {0x1p-7, 0x1p-7, 1};
  EXPECT_TRUE(ways({1, 0x1p-8, 2}, 2 + 0x1p-7).empty());
}

// Two rows of two experts. The gate of the first row is on the edge, behind it everything differs.
class OneGateOnTheEdge : public ::testing::Test {
 protected:
  [[nodiscard]] std::pair<Values, Values> made(std::vector<Edge> edges) const {
    Edges way{.other_way = std::move(edges)};
    const LayerForward there = forward(form, weights, side, input, Rounding::AsStored, &way);
    return {there.output,
            backward(form, weights, side, input, there, grad_output, Rounding::AsStored, &way)
                .grad_input};
  }
  [[nodiscard]] std::vector<Edge> ways(const Values& should, const Values& is,
                                       const Values* gradient) const {
    const std::vector<float> numbers = narrow(is);
    return other_ways(
        {.form = form, .weights = weights, .side = side, .input = input, .grad_output = gradient},
        {}, {should, numbers, should, kBound});
  }

  const LayerForm form{
      .kind = ModuleKind::GroupedMlp, .tokens = 2, .hidden = 2, .ffn = 1, .groups = 2};
  const LayerWeights weights{.first = {3, 0, 1, 0, 1, 1, 1, 0}, .second = {1, 2, 1, -1}};
  const LayerSide side{.sizes = {1, 1}, .probabilities = {1, 0.5}};
  const Values input{0x1p-6, 0, 1, 0x1p-8};
  const Values grad_output{0x1p-6, 0, 1, 0.75};
  const std::vector<Edge> gate{{Place::First, 1, 0}};
};

TEST_F(OneGateOnTheEdge, IsFoundByTheOutput) {
  const Values should = made({}).first;
  const Values is = made(gate).first;
  EXPECT_GT(relative_error(should, narrow(is)), kBound);
  EXPECT_EQ(ways(should, is, nullptr), gate);
}

TEST_F(OneGateOnTheEdge, IsFoundByTheGradient) {
  const Values should = made({}).second;
  const Values is = made(gate).second;
  EXPECT_GT(relative_error(should, narrow(is)), kBound);
  EXPECT_EQ(ways(should, is, &grad_output), gate);
}

TEST_F(OneGateOnTheEdge, DoesNotExcuseAnotherRow) {
  const Values should = made({}).first;
  Values is = should;
  is[0] += 0.02 * should[2];
  EXPECT_GT(relative_error(should, narrow(is)), kBound);
  EXPECT_TRUE(ways(should, is, nullptr).empty());
}

TEST_F(OneGateOnTheEdge, IsNotFollowedHalfWay) {
  const Values should = made({}).first;
  Values is = made(gate).first;
  is[0] += 0.02 * should[2];
  EXPECT_TRUE(ways(should, is, nullptr).empty());
}

// A NaN is beyond every bound, whatever becomes of the other row.
TEST_F(OneGateOnTheEdge, IsNotLookedForBesideAValueThatNoRoundingMakes) {
  const Values should = made({}).first;
  Values is = made(gate).first;
  is[0] = std::nan("");
  EXPECT_TRUE(ways(should, is, nullptr).empty());
  is[0] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(ways(should, is, nullptr).empty());
}

TEST_F(OneGateOnTheEdge, IsLookedForOnlyIfAsked) {
  Edges edges{.look = true};
  (void)forward(form, weights, side, input, Rounding::AsStored, &edges);
  EXPECT_EQ(edges.near, gate);
  Edges none;
  (void)forward(form, weights, side, input, Rounding::AsStored, &none);
  EXPECT_TRUE(none.near.empty());
}

// Two sequences of two rows that read each other evenly. The value of the last row is on the edge,
// and what that row makes is half of it.
TEST(OneValueOnTheEdge, OfASequenceIsFoundByWhatTheSequenceMakes) {
  const LayerForm form{.kind = ModuleKind::Attention,
                       .tokens = 4,
                       .hidden = 2,
                       .heads = 1,
                       .kv_heads = 1,
                       .head_dim = 1,
                       .sequence = 2};
  const LayerWeights weights{.first = {0, 0, 0, 0, 1, 1}, .second = {1, 2}};
  const LayerSide side;
  const Values input{0x1p-6, 0, 0x1p-6, 0, 0x1p-6, 0, 1, 0x1p-8};
  const std::vector<Edge> value{{Place::First, 3, 2}};
  const auto made = [&](std::vector<Edge> edges) {
    Edges way{.other_way = std::move(edges)};
    return forward(form, weights, side, input, Rounding::AsStored, &way).output;
  };
  const Values should = made({});
  const Values is = made(value);
  EXPECT_GT(relative_error(should, narrow(is)), kBound);
  const auto ways = [&](const Values& of, const std::vector<Edge>& known) {
    const std::vector<float> numbers = narrow(of);
    const Values from = made(known);
    return other_ways({.form = form, .weights = weights, .side = side, .input = input}, known,
                      {from, numbers, from, kBound});
  };
  EXPECT_EQ(ways(is, {}), value);
  EXPECT_TRUE(ways(is, value).empty()) << "it went that way already";
  Values wrong = is;
  wrong[2] += 0.02 * should[7];
  EXPECT_TRUE(ways(wrong, {}).empty()) << "of the other sequence";
}

}  // namespace
}  // namespace capo::run::reference
