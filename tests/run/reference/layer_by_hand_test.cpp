// Layers so small that what they come to can be written down: what each kind computes, the order of
// indices in its tensors, and the places where a value is rounded.
//
// Roundings are seen with numbers like a = 1 + 2^-7, the next bf16 above 1: a * a is
// 1 + 2^-6 + 2^-14, and in bf16 1 + 2^-6.

#include "core/base/assert.h"
#include "run/reference/layer_reference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace capo::run::reference {
namespace {

using Values = std::vector<double>;

const double kA = 1 + std::ldexp(1, -7);
const double kSquare = 1 + std::ldexp(1, -6) + std::ldexp(1, -14);
const double kRoundedSquare = 1 + std::ldexp(1, -6);
const double kLog3 = std::log(3.0);  // its sigmoid is 3/4

void expect_near(const Values& values, const Values& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 1e-14 * std::abs(expected[i])) << "at " << i;
  }
}

TEST(LayerByHand, ALinearOfOneNumber) {
  const LayerForm form{.tokens = 1, .hidden = 1, .ffn = 1, .bias = true};
  const LayerWeights weights{.first = {-2}, .first_bias = {0.5}};
  const LayerForward there = forward(form, weights, {}, {3}, Rounding::Exact);
  EXPECT_EQ(there.output, Values({-5.5}));
  const LayerBackward back = backward(form, weights, {}, {3}, there, {4}, Rounding::Exact);
  EXPECT_EQ(back.grad_input, Values({-8}));
  EXPECT_EQ(back.grads.first, Values({12}));
  EXPECT_EQ(back.grads.first_bias, Values({4}));
}

TEST(LayerByHand, AWeightHasARowForEachColumnOfTheOutput) {
  const LayerForm form{.kind = ModuleKind::BasicLinearOp, .tokens = 2, .hidden = 2, .ffn = 3};
  const LayerWeights weights{.first = {1, 10, 100, 1000, 3, 5}};
  const Values input{1, 2, 0, -1};
  const LayerForward there = forward(form, weights, {}, input, Rounding::Exact);
  EXPECT_EQ(there.output, Values({21, 2100, 13, -10, -1000, -5}));
  const Values grad_output{1, 0, 2, 0, 1, 0};
  const LayerBackward back =
      backward(form, weights, {}, input, there, grad_output, Rounding::Exact);
  EXPECT_EQ(back.grad_input, Values({7, 20, 100, 1000}));
  EXPECT_EQ(back.grads.first, Values({1, 2, 0, -1, 2, 4}));
}

TEST(LayerByHand, EachGroupHasItsRowsAndItsScaledBias) {
  const LayerForm form{.kind = ModuleKind::GroupedLinearOp,
                       .tokens = 4,
                       .hidden = 1,
                       .ffn = 1,
                       .groups = 3,
                       .bias = true,
                       .scale_bias = true};
  const LayerWeights weights{.first = {2, 3, 5}, .first_bias = {10, 20, 30}};
  const LayerSide side{.sizes = {1, 0, 2}, .scales = {0.5, 2, -1, 9}};
  const Values input{1, 2, 3, 4};
  const LayerForward there = forward(form, weights, side, input, Rounding::Exact);
  EXPECT_EQ(there.output, Values({7, 70, -15, 0}));
  const LayerBackward back =
      backward(form, weights, side, input, there, {1, 10, 100, 1000}, Rounding::Exact);
  EXPECT_EQ(back.grad_input, Values({2, 50, 500, 0}));
  EXPECT_EQ(back.grads.first, Values({1, 0, 320}));
  EXPECT_EQ(back.grads.first_bias, Values({0.5, 0, -80}));
  EXPECT_EQ(back.grad_scales, Values({10, 300, 3000, 0}));
}

TEST(LayerByHand, ANormDividesByTheDeviationOverAllColumns) {
  const LayerForm form{
      .kind = ModuleKind::LayerNormLinear, .tokens = 2, .hidden = 4, .ffn = 1, .bias = true};
  const LayerWeights weights{.norm_weight = {1, 1, 2, 3},
                             .norm_bias = {0, 7, 0, 0},
                             .first = {1, 10, 100, 1000},
                             .first_bias = {0.25}};
  // Means 2 and 8; variances 6 and 0.
  const double deviation = std::sqrt(6 + static_cast<double>(1e-5F));
  const Values normed{-2 / deviation, 7 - 2 / deviation, 8 / deviation, 0, 0, 7, 0, 0};
  const LayerForward there = forward(form, weights, {}, {0, 0, 6, 2, 8, 8, 8, 8}, Rounding::Exact);
  expect_near(there.normed, normed);
  expect_near(there.output, {70.25 + 778 / deviation, 70.25});
}

// gate = ln 3 has silu 3/4 ln 3, of slope 3/4 (1 + 1/4 ln 3).
TEST(LayerByHand, AnMlpTakesTheGateFirst) {
  const LayerForm form{.kind = ModuleKind::GroupedMlp, .tokens = 1, .hidden = 1, .ffn = 1};
  const LayerWeights weights{.first = {kLog3, 8}, .second = {2}};
  const LayerSide side{.probabilities = {0.5}};
  const LayerForward there = forward(form, weights, side, {1}, Rounding::Exact);
  expect_near(there.middle, {kLog3, 8});
  expect_near(there.active, {3 * kLog3});
  expect_near(there.output, {6 * kLog3});
  const LayerBackward back = backward(form, weights, side, {1}, there, {1}, Rounding::Exact);
  const double grad_gate = 6 + 1.5 * kLog3;
  const double grad_linear = 0.75 * kLog3;
  expect_near(back.grads.second, {3 * kLog3});
  expect_near(back.grad_probabilities, {12 * kLog3});
  expect_near(back.grads.first, {grad_gate, grad_linear});
  expect_near(back.grad_input, {grad_gate * kLog3 + grad_linear * 8});
}

// The second row has scores 0 and 2 log 3, so it reads the first with 1/10 and itself with 9/10.
// The score of itself has a slope of 9/100 times the difference of the values.
TEST(LayerByHand, AnAttentionReadsRowsUpToItselfBetweenTwoProducts) {
  const LayerForm form{.kind = ModuleKind::Attention,
                       .tokens = 2,
                       .hidden = 2,
                       .heads = 1,
                       .kv_heads = 1,
                       .head_dim = 1,
                       .sequence = 2};
  const LayerWeights weights{.first = {1, 0, 0, kLog3, 8, 4}, .second = {10, 100}};
  const Values input{1, 0, 2, 1};
  const LayerForward there = forward(form, weights, {}, input, Rounding::Exact);
  expect_near(there.middle, {1, 0, 8, 2, kLog3, 20});
  expect_near(there.active, {8, 18.8});
  expect_near(there.output, {80, 800, 188, 1880});
  const LayerBackward back =
      backward(form, weights, {}, input, there, {0, 0, 0.1, 0}, Rounding::Exact);
  const double slope = 1.08;
  expect_near(back.grads.second, {1.88, 0});
  expect_near(back.grads.first, {2 * slope * kLog3, slope * kLog3, 2 * slope, 2 * slope, 1.9, 0.9});
  expect_near(back.grad_input,
              {0.8, 0.4 - 2 * slope * kLog3, slope * kLog3 + 7.2, 2 * slope * kLog3 + 3.6});
}

TEST(LayerByHand, AnMlpBehindANormHasNoProbabilities) {
  const LayerForm form{
      .kind = ModuleKind::LayerNormMlp, .tokens = 1, .hidden = 2, .ffn = 1, .bias = true};
  // The norm of a row of equal numbers is its bias.
  const LayerWeights weights{.norm_weight = {9, 9},
                             .norm_bias = {1, 2},
                             .first = {0, 0, 1, 3},
                             .first_bias = {kLog3, 1},
                             .second = {4, 8},
                             .second_bias = {0, 1}};
  const LayerForward there = forward(form, weights, {}, {5, 5}, Rounding::Exact);
  expect_near(there.normed, {1, 2});
  expect_near(there.middle, {kLog3, 8});
  expect_near(there.active, {6 * kLog3});
  expect_near(there.output, {24 * kLog3, 48 * kLog3 + 1});
}

// 2^-8 is half of what bf16 resolves at 1 + 2^-6: added to that it is lost, added to the square
// itself it is not.
TEST(LayerByHand, ABiasIsAddedToARoundedProduct) {
  const LayerForm form{.tokens = 1, .hidden = 1, .ffn = 1, .bias = true};
  const LayerWeights weights{.first = {kA}, .first_bias = {std::ldexp(1, -8)}};
  const LayerForward there = forward(form, weights, {}, {kA}, Rounding::AsStored);
  EXPECT_EQ(there.output, Values({kRoundedSquare}));
  EXPECT_EQ(rounded(kSquare + std::ldexp(1, -8), DataType::Bf16),
            kRoundedSquare + std::ldexp(1, -7));
}

TEST(LayerByHand, GradientsOfAWeightAreNotRounded) {
  const LayerForm form{.tokens = 1, .hidden = 1, .ffn = 1};
  const LayerWeights weights{.first = {kA}};
  const LayerForward there = forward(form, weights, {}, {kA}, Rounding::AsStored);
  const LayerBackward back = backward(form, weights, {}, {kA}, there, {kA}, Rounding::AsStored);
  EXPECT_EQ(back.grads.first, Values({kSquare}));
  EXPECT_EQ(back.grad_input, Values({kRoundedSquare}));
}

TEST(LayerByHand, EachStepOfAnMlpReadsWhatTheOneBeforeStored) {
  const LayerForm form{.kind = ModuleKind::GroupedMlp, .tokens = 1, .hidden = 1, .ffn = 1};
  const LayerWeights weights{.first = {kA, 3 * kA}, .second = {kA}};
  const LayerSide side{.probabilities = {0.75}};
  const auto bf16 = [](double value) { return rounded(value, DataType::Bf16); };

  const LayerForward there = forward(form, weights, side, {kA}, Rounding::AsStored);
  const double gate = kRoundedSquare;
  const double linear = bf16(3 * kSquare);
  const double s = 1 / (1 + std::exp(-gate));
  const double active = bf16(gate * s * linear * 0.75);
  EXPECT_EQ(there.middle, Values({gate, linear}));
  EXPECT_EQ(there.active, Values({active}));
  EXPECT_EQ(there.output, Values({bf16(active * kA)}));

  const LayerBackward back = backward(form, weights, side, {kA}, there, {kA}, Rounding::AsStored);
  const double grad_active = kRoundedSquare;
  const double grad_gate = bf16(grad_active * 0.75 * linear * s * (1 + gate * (1 - s)));
  const double grad_linear = bf16(grad_active * 0.75 * gate * s);
  EXPECT_EQ(back.grads.second, Values({kA * active}));
  EXPECT_EQ(back.grad_probabilities,
            Values({rounded(grad_active * gate * s * linear, DataType::Fp32)}));
  EXPECT_EQ(back.grads.first, Values({grad_gate * kA, grad_linear * kA}));
  EXPECT_EQ(back.grad_input, Values({bf16(grad_gate * kA + grad_linear * 3 * kA)}));
}

TEST(LayerByHand, ANormReadsTheRoundedGradientOfItsOutput) {
  const LayerForm form{
      .kind = ModuleKind::LayerNormLinear, .tokens = 1, .hidden = 2, .ffn = 1, .bias = true};
  const LayerWeights weights{
      .norm_weight = {1, 1}, .norm_bias = {0, 0}, .first = {kA, 1}, .first_bias = {0}};
  const LayerForward there = forward(form, weights, {}, {3, 5}, Rounding::AsStored);
  EXPECT_EQ(there.normed, Values({-1, 1}));  // before rounding a little nearer to zero
  const LayerBackward back = backward(form, weights, {}, {3, 5}, there, {kA}, Rounding::AsStored);
  EXPECT_EQ(back.grads.first, Values({-kA, kA}));  // of what was stored
  EXPECT_EQ(back.grads.norm_bias, Values({kRoundedSquare, kA}));
  const double xhat = 1 / std::sqrt(1 + static_cast<double>(1e-5F));
  expect_near(back.grads.norm_weight, {-xhat * kRoundedSquare, xhat * kA});
}

TEST(LayerByHand, GradientsOfScalesAreOfFp32) {
  const LayerForm form{.kind = ModuleKind::GroupedLinearOp,
                       .tokens = 1,
                       .hidden = 1,
                       .ffn = 2,
                       .bias = true,
                       .scale_bias = true};
  const double small = std::ldexp(1, -15);
  const LayerWeights weights{.first = {1, 1}, .first_bias = {1, small}};
  const LayerSide side{.scales = {1}};
  const LayerForward there = forward(form, weights, side, {1}, Rounding::AsStored);
  for (const Rounding rounding : {Rounding::AsStored, Rounding::Exact}) {
    const LayerBackward back = backward(form, weights, side, {1}, there, {1, small}, rounding);
    const double exact = 1 + small * small;
    EXPECT_EQ(back.grad_scales, Values({rounding == Rounding::Exact ? exact : 1}));
  }
}

TEST(LayerByHand, WhatDoesNotFitItsFormIsRefused) {
  const auto run = [](const LayerForm& form, const LayerWeights& weights, const LayerSide& side) {
    static_cast<void>(forward(form, weights, side, {1, 2}, Rounding::Exact));
  };
  const LayerForm linear{.tokens = 2, .hidden = 1, .ffn = 1};
  EXPECT_NO_THROW(run(linear, {.first = {1}}, {}));
  EXPECT_THROW(run(linear, {.first = {1, 1}}, {}), InternalError);
  EXPECT_THROW(run(linear, {.first = {1}, .first_bias = {1}}, {}), InternalError);

  LayerForm grouped = linear;
  grouped.kind = ModuleKind::GroupedLinear;
  grouped.groups = 2;
  EXPECT_NO_THROW(run(grouped, {.first = {1, 1}}, {.sizes = {0, 2}}));
  EXPECT_THROW(run(grouped, {.first = {1, 1}}, {.sizes = {2}}), InternalError);
  EXPECT_THROW(run(grouped, {.first = {1, 1}}, {.sizes = {1, 2}}), InternalError);
  EXPECT_THROW(run(grouped, {.first = {1, 1}}, {.sizes = {-1, 2}}), InternalError);
}

// One token of one column: its norm is its bias, 1, so that the logits are the router's weights.
LayerForm routed(DataType type) {
  return {.kind = ModuleKind::MoeLayer,
          .type = type,
          .tokens = 1,
          .hidden = 1,
          .ffn = 1,
          .groups = 3,
          .top_k = 2};
}

LayerWeights experts(const Values& router) {
  return {.norm_weight = {7},
          .norm_bias = {1},
          .router = router,
          .first = {kLog3, 4, kLog3, 40, kLog3, 400},
          .second = {1, 1, 1}};
}

// silu(log 3) is 3/4 of log 3. Shares of 1/4, 1/4 and 1/2; the token itself is added.
TEST(LayerByHand, ATokenIsTheSumOfItsExpertsByProbability) {
  const LayerWeights weights = experts({0, 0, std::log(2.0)});
  const LayerForward there = forward(routed(DataType::Fp32), weights, {}, {5}, Rounding::Exact);
  EXPECT_EQ(there.choices, (std::vector<std::int64_t>{2, 0}));
  expect_near(there.output, {5 + 0.75 * kLog3 * (400 * 0.5 + 4 * 0.25)});
  const LayerBackward back =
      backward(routed(DataType::Fp32), weights, {}, {5}, there, {1}, Rounding::Exact);
  expect_near(back.grads.second, {0.25 * 3 * kLog3, 0, 0.5 * 300 * kLog3});
  // The probabilities' gradients are 3 log 3 and 300 log 3; their mean by share is 150.75 log 3.
  expect_near(back.grads.router,
              {0.25 * (3 - 150.75) * kLog3, 0.25 * -150.75 * kLog3, 0.5 * (300 - 150.75) * kLog3});
}

std::int64_t refused(const Values& router, const std::vector<std::int64_t>& choices) {
  return forward(routed(DataType::Bf16), experts(router), {.choices = choices}, {5},
                 Rounding::AsStored)
      .refused;
}

TEST(LayerByHand, ChoicesOfARunAreAdmissibleIfLogitsNearbyLeadToThem) {
  EXPECT_EQ(refused({1, 2, 3}, {2, 1}), 0);
  EXPECT_EQ(refused({1, 2, 3}, {1, 2}), 1) << "in another order";
  EXPECT_EQ(refused({1, 2, 3}, {2, 0}), 1);
  EXPECT_EQ(refused({1, 2, 3}, {2, 2}), 1) << "twice the same";
  EXPECT_EQ(refused({1, 2, 3}, {3, 2}), 1) << "no group";
  EXPECT_EQ(refused({1, 3, 3}, {1, 2}), 0);
  EXPECT_EQ(refused({1, 3, 3}, {2, 1}), 1) << "of equal ones the lower comes first";
  // Halfway between two numbers of bf16 either may be stored; just beside, only one may.
  const double half = 1 + std::ldexp(1, -8);
  EXPECT_EQ(refused({half, 1, 0}, {0, 1}), 0);
  EXPECT_EQ(refused({1, half, 0}, {0, 1}), 0);
  EXPECT_EQ(refused({1, half, 0}, {1, 0}), 0);
  EXPECT_EQ(refused({1, half + std::ldexp(1, -16), 0}, {0, 1}), 1);
  EXPECT_EQ(refused({1, half - std::ldexp(1, -16), 0}, {1, 0}), 1);
}

// The norm makes its bias. Halfway between two numbers of bf16 either may have been multiplied by
// the router's weights, and then the first logit may be the second one's.
TEST(LayerByHand, ChoicesAreAdmissibleIfTheNormMayHaveBeenRoundedSo) {
  const double step = std::ldexp(1, -7);
  const auto refused_behind = [&](double bias) {
    LayerWeights weights = experts({1, 1 + step, 0});
    weights.norm_bias = {bias};
    return forward(routed(DataType::Bf16), weights, {.choices = {0, 1}}, {5}, Rounding::AsStored)
        .refused;
  };
  EXPECT_EQ(refused_behind(1 + step / 2), 0);
  EXPECT_EQ(refused_behind(1), 1);
}

// Its logit would be the next token's first.
TEST(LayerByHand, NoGroupIsBehindTheLastOne) {
  LayerForm two = routed(DataType::Bf16);
  two.tokens = 2;
  const auto refused_of = [&](const std::vector<std::int64_t>& choices) {
    return forward(two, experts({3, 2, 1}), {.choices = choices}, {5, 6}, Rounding::AsStored)
        .refused;
  };
  EXPECT_EQ(refused_of({0, 1, 0, 1}), 0);
  EXPECT_EQ(refused_of({0, 3, 0, 1}), 1);
}

}  // namespace
}  // namespace capo::run::reference
