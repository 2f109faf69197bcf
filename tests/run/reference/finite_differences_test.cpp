// The reference of a layer against slopes of its own output, for every kind of layer and every
// value that has a gradient; and what holds of whatever it stores.
//
// The loss is a sum of random numbers times outputs. Central differences of it need no formula but
// those of the forward, which layer_by_hand_test.cpp pins down. They err by h^2 / 6 times a third
// derivative, and by what the rounding of outputs to double comes to, some 1e-16 / h: h = 1e-5
// makes little of both, 2e-10 at most with the layers here.

#include "run/reference/layer_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>

namespace capo::run::reference {
namespace {

using Values = std::vector<double>;

constexpr double kStep = 1e-5;
constexpr double kRelative = 1e-6;
constexpr double kAbsolute = 1e-9;

struct Case {
  std::string name;
  LayerForm form;
  std::vector<std::int64_t> sizes;
};

Case case_of(ModuleKind kind, const std::string& suffix, std::vector<std::int64_t> sizes = {}) {
  std::string name = std::string(name_of(kind)) + suffix;
  std::replace(name.begin(), name.end(), '-', '_');
  return {.name = name,
          .form = {.kind = kind,
                   .tokens = 5,
                   .hidden = 4,
                   .ffn = 3,
                   .groups = sizes.empty() ? 1 : std::ssize(sizes)},
          .sizes = sizes};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const ModuleKind kind : {ModuleKind::Linear, ModuleKind::BasicLinearOp,
                                ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp}) {
    cases.push_back(case_of(kind, ""));
  }
  Case attention = case_of(ModuleKind::Attention, "");
  attention.form.tokens = 6;
  attention.form.heads = 4;
  attention.form.kv_heads = 2;
  attention.form.head_dim = 2;
  attention.form.sequence = 3;
  cases.push_back(attention);
  for (const ModuleKind kind :
       {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp}) {
    cases.push_back(case_of(kind, "_of_one_group"));
    cases.push_back(case_of(kind, "_of_an_empty_group", {2, 0, 3}));
    cases.push_back(case_of(kind, "_with_rows_beyond", {0, 1, 2}));
    cases.push_back(case_of(kind, "_without_rows", {0, 0, 0}));
  }
  Case routed = case_of(ModuleKind::MoeLayer, "");
  routed.form.groups = 3;
  for (const std::int64_t top_k : {1, 2, 3}) {
    routed.name = "moe_layer_of_" + std::to_string(top_k);
    routed.form.top_k = top_k;
    cases.push_back(routed);
  }
  // The halves of transformer layers have a norm and a sum.
  Case half = attention;
  half.form.half = true;
  half.name = "half_of_attention";
  cases.push_back(half);
  half = case_of(ModuleKind::LayerNormMlp, "");
  half.form.half = true;
  half.name = "half_of_an_mlp";
  cases.push_back(half);
  half = routed;
  half.form.half = true;
  half.name = "half_of_experts";
  cases.push_back(half);
  for (std::size_t i = 0, without_bias = cases.size(); i < without_bias; ++i) {
    if (cases[i].form.top_k > 0) continue;  // has none
    Case biased = cases[i];
    biased.name += "_biased";
    biased.form.bias = true;
    cases.push_back(biased);
    if (biased.form.kind != ModuleKind::GroupedLinearOp) continue;
    biased.name += "_by_scales";
    biased.form.scale_bias = true;
    cases.push_back(biased);
  }
  return cases;
}

struct Layer {
  LayerForm form;
  LayerWeights weights;
  LayerSide side;
  Values input;
  Values loss;  // what each output counts
};

// Of random values that their types have.
Layer layer_of(const Case& of, DataType type) {
  std::mt19937 random(7);
  const auto values = [&](std::int64_t count, DataType as) {
    std::uniform_real_distribution<double> between(-1, 1);
    Values made(count);
    for (double& value : made) value = rounded(between(random), as);
    return made;
  };
  Layer layer{.form = of.form, .side = {.sizes = of.sizes}};
  LayerForm& form = layer.form;
  form.type = type;
  const bool routed = form.top_k > 0;
  const bool norm = routed || form.half || form.kind == ModuleKind::LayerNormLinear ||
                    form.kind == ModuleKind::LayerNormMlp;
  const bool attention = form.kind == ModuleKind::Attention;
  const bool two = attention || routed || form.kind == ModuleKind::LayerNormMlp ||
                   form.kind == ModuleKind::GroupedMlp;
  const std::int64_t between = attention ? form.heads * form.head_dim : form.ffn;
  const std::int64_t qkv = (form.heads + 2 * form.kv_heads) * form.head_dim;
  const std::int64_t out = attention ? qkv : two ? 2 * form.ffn : form.ffn;
  if (norm) {
    layer.weights.norm_weight = values(form.hidden, type);
    layer.weights.norm_bias = values(form.hidden, type);
  }
  if (routed) layer.weights.router = values(form.groups * form.hidden, type);
  layer.weights.first = values(form.groups * out * form.hidden, type);
  if (form.bias) layer.weights.first_bias = values(form.groups * out, type);
  if (two) layer.weights.second = values(form.groups * form.hidden * between, type);
  if (two && form.bias) layer.weights.second_bias = values(form.groups * form.hidden, type);
  if (form.kind == ModuleKind::GroupedMlp) {
    layer.side.probabilities = values(form.tokens, DataType::Fp32);
  }
  if (form.scale_bias) layer.side.scales = values(form.tokens, DataType::Fp32);
  layer.input = values(form.tokens * form.hidden, type);
  layer.loss = values(form.tokens * (two ? form.hidden : form.ffn), type);
  return layer;
}

LayerForward forward_of(const Layer& layer, Rounding rounding) {
  return forward(layer.form, layer.weights, layer.side, layer.input, rounding);
}

LayerBackward backward_of(const Layer& layer, Rounding rounding) {
  return backward(layer.form, layer.weights, layer.side, layer.input, forward_of(layer, rounding),
                  layer.loss, rounding);
}

// `varied`: the values of a layer that the gradient is of.
void expect_slopes(const Layer& at, const Values& gradient,
                   const std::function<Values&(Layer&)>& varied) {
  Layer above = at;
  Layer below = at;
  ASSERT_EQ(gradient.size(), varied(above).size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double value = varied(above)[i];
    varied(above)[i] = value + kStep;
    varied(below)[i] = value - kStep;
    const Values output_above = forward_of(above, Rounding::Exact).output;
    const Values output_below = forward_of(below, Rounding::Exact).output;
    double slope = 0;
    for (std::size_t o = 0; o < at.loss.size(); ++o) {
      slope += at.loss[o] * (output_above[o] - output_below[o]) / (2 * kStep);
    }
    EXPECT_NEAR(gradient[i], slope, kRelative * std::abs(slope) + kAbsolute) << "at " << i;
    varied(above)[i] = value;
    varied(below)[i] = value;
  }
}

class LayerGradients : public ::testing::TestWithParam<Case> {};

TEST_P(LayerGradients, EveryGradientIsTheSlopeOfTheLoss) {
  const Layer layer = layer_of(GetParam(), DataType::Fp32);
  const LayerBackward result = backward_of(layer, Rounding::Exact);
  const std::pair<const char*, Values LayerWeights::*> weights[] = {
      {"norm_weight", &LayerWeights::norm_weight}, {"norm_bias", &LayerWeights::norm_bias},
      {"router", &LayerWeights::router},           {"first", &LayerWeights::first},
      {"first_bias", &LayerWeights::first_bias},   {"second", &LayerWeights::second},
      {"second_bias", &LayerWeights::second_bias}};
  for (const auto& [name, member] : weights) {
    SCOPED_TRACE(name);
    expect_slopes(layer, result.grads.*member,
                  [of = member](Layer& l) -> Values& { return l.weights.*of; });
  }
  SCOPED_TRACE("input, probabilities, scales");
  expect_slopes(layer, result.grad_input, [](Layer& l) -> Values& { return l.input; });
  expect_slopes(layer, result.grad_probabilities,
                [](Layer& l) -> Values& { return l.side.probabilities; });
  expect_slopes(layer, result.grad_scales, [](Layer& l) -> Values& { return l.side.scales; });
}

// A half has the values of the whole, and nothing of the other half.
TEST_P(LayerGradients, AHalfThatIsWantedIsThatOfTheWhole) {
  const Layer layer = layer_of(GetParam(), DataType::Bf16);
  const auto half = [&](Wanted wanted) {
    return backward(layer.form, layer.weights, layer.side, layer.input,
                    forward_of(layer, Rounding::AsStored), layer.loss, Rounding::AsStored, nullptr,
                    wanted);
  };
  const LayerBackward whole = backward_of(layer, Rounding::AsStored);
  const LayerBackward input = half(Wanted::InputGradient);
  EXPECT_EQ(input.grad_input, whole.grad_input);
  EXPECT_EQ(input.grad_input_magnitudes, whole.grad_input_magnitudes);
  EXPECT_EQ(input.grad_probabilities, whole.grad_probabilities);
  EXPECT_EQ(input.grad_scales, whole.grad_scales);
  EXPECT_EQ(input.grads.norm_weight, whole.grads.norm_weight);
  EXPECT_EQ(input.grads.norm_bias, whole.grads.norm_bias);
  EXPECT_TRUE(input.grads.first.empty() && input.grads.second.empty());
  EXPECT_TRUE(input.grads.router.empty());
  EXPECT_TRUE(input.grads.first_bias.empty() && input.grads.second_bias.empty());
  const LayerBackward weights = half(Wanted::WeightGradients);
  EXPECT_EQ(weights.grads.first, whole.grads.first);
  EXPECT_EQ(weights.grads.router, whole.grads.router);
  EXPECT_EQ(weights.grads.first_bias, whole.grads.first_bias);
  EXPECT_EQ(weights.grads.second, whole.grads.second);
  EXPECT_EQ(weights.grads.second_bias, whole.grads.second_bias);
  EXPECT_TRUE(weights.grad_input.empty() && weights.grads.norm_weight.empty());
}

void expect_all_are_of(DataType type, const Values& values) {
  for (const double value : values) EXPECT_EQ(rounded(value, type), value);
}

TEST_P(LayerGradients, WhatIsStoredIsOfItsType) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    SCOPED_TRACE(name_of(type));
    const Layer layer = layer_of(GetParam(), type);
    const LayerForward there = forward_of(layer, Rounding::AsStored);
    const LayerBackward back = backward_of(layer, Rounding::AsStored);
    for (const Values& values :
         {there.output, there.normed, there.logits, there.middle, there.active, back.grad_input}) {
      expect_all_are_of(type, values);
    }
    expect_all_are_of(DataType::Fp32, back.grad_probabilities);
    expect_all_are_of(DataType::Fp32, back.grad_scales);
  }
}

// From the first row beyond the sum on.
Values beyond(const Values& values, const Layer& layer) {
  std::ptrdiff_t rows = 0;
  for (const std::int64_t size : layer.side.sizes) rows += size;
  if (layer.side.sizes.empty()) rows = layer.form.tokens;
  return {values.begin() + rows * std::ssize(values) / layer.form.tokens, values.end()};
}

TEST_P(LayerGradients, RowsBeyondTheSumAreNeitherReadNorMade) {
  const Layer layer = layer_of(GetParam(), DataType::Bf16);
  Layer poisoned = layer;
  for (Values* values :
       {&poisoned.input, &poisoned.loss, &poisoned.side.probabilities, &poisoned.side.scales}) {
    const std::ptrdiff_t count = std::ssize(beyond(*values, layer));
    std::fill(values->end() - count, values->end(), std::nan(""));
  }
  const LayerForward there = forward_of(poisoned, Rounding::AsStored);
  const LayerBackward back = backward_of(poisoned, Rounding::AsStored);
  for (const Values& values : {there.output, there.middle, there.active, back.grad_input,
                               back.grad_probabilities, back.grad_scales}) {
    for (const double value : beyond(values, layer)) EXPECT_EQ(value, 0);
  }
  const LayerBackward expected = backward_of(layer, Rounding::AsStored);
  EXPECT_EQ(there.output, forward_of(layer, Rounding::AsStored).output);
  EXPECT_EQ(back.grads.first, expected.grads.first);
  EXPECT_EQ(back.grads.first_bias, expected.grads.first_bias);
  EXPECT_EQ(back.grads.second, expected.grads.second);
  EXPECT_EQ(back.grads.second_bias, expected.grads.second_bias);
}

INSTANTIATE_TEST_SUITE_P(Cases, LayerGradients, ::testing::ValuesIn(all_cases()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace capo::run::reference
