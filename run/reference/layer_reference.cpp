#include "run/reference/layer_reference.h"
#include "core/base/assert.h"
#include "run/reference/layer_parts.h"
#include "run/reference/layer_store.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

namespace capo::run::reference {

namespace {

std::vector<std::int64_t> group_of_each_row(const LayerForm& form, const LayerSide& side) {
  if (!has_groups(form.kind) || side.sizes.empty()) {
    return std::vector<std::int64_t>(form.tokens, 0);
  }
  std::vector<std::int64_t> group;
  for (std::int64_t g = 0; g < form.groups; ++g) group.insert(group.end(), side.sizes[g], g);
  return group;
}

// Columns of what is between two products.
std::int64_t middle_columns(const LayerForm& form) {
  return attends(form.kind) ? (form.heads + 2 * form.kv_heads) * form.head_dim : 2 * form.ffn;
}
std::int64_t active_columns(const LayerForm& form) {
  return attends(form.kind) ? form.heads * form.head_dim : form.ffn;
}

Heads heads_of(const LayerForm& form) {
  return {.rows = form.tokens,
          .sequence = form.sequence,
          .heads = form.heads,
          .kv_heads = form.kv_heads,
          .head_dim = form.head_dim};
}

Product first_product(const LayerForm& form, const LayerSide& side) {
  return {.group = group_of_each_row(form, side),
          .rows = form.tokens,
          .groups = form.groups,
          .in = form.hidden,
          .out = has_two_products(form.kind) ? middle_columns(form) : form.ffn};
}

Product second_product(const LayerForm& form, const LayerSide& side) {
  return {.group = group_of_each_row(form, side),
          .rows = form.tokens,
          .groups = form.groups,
          .in = active_columns(form),
          .out = form.hidden};
}

// Factors of rows are ones where a layer has none.
Values scales_of(const LayerForm& form, const LayerSide& side) {
  return form.scale_bias ? side.scales : Values(form.tokens, 1);
}

Values probabilities_of(const LayerForm& form, const LayerSide& side) {
  return form.kind == ModuleKind::GroupedMlp ? side.probabilities : Values(form.tokens, 1);
}

// Without this a wrong size would read what lies behind a vector.
void check(const LayerForm& form, const LayerWeights& weights, const LayerSide& side,
           const Values& input) {
  const ModuleKind kind = form.kind;
  const Product first = first_product(form, {});
  const Product second = second_product(form, {});
  const std::int64_t norm = begins_with_norm(form) ? form.hidden : 0;
  const std::int64_t two = has_two_products(kind) ? form.groups : 0;
  const std::int64_t bias = form.bias ? 1 : 0;

  CAPO_ASSERT(kind != ModuleKind::TransformerLayer, "each of its halves is a layer here");
  CAPO_ASSERT(has_groups(kind) || routes(kind) || form.groups == 1,
              "only grouped kinds and routers have several groups");
  CAPO_ASSERT(!routes(kind) || (form.top_k > 0 && form.top_k <= form.groups && !form.bias),
              "a token chooses some of the groups, none twice, and experts have no bias");
  CAPO_ASSERT(std::ssize(weights.router) == (routes(kind) ? form.groups * form.hidden : 0),
              "a router has a weight");
  CAPO_ASSERT(side.choices.empty() || std::ssize(side.choices) == form.tokens * form.top_k,
              "every token has its choices");
  CAPO_ASSERT(!attends(kind) || (form.kv_heads > 0 && form.heads % form.kv_heads == 0 &&
                                 form.sequence > 0 && form.tokens % form.sequence == 0),
              "an attention has heads that share kv heads evenly, and whole sequences");
  CAPO_ASSERT(!form.scale_bias || (kind == ModuleKind::GroupedLinearOp && form.bias),
              "only a grouped-linear-op with a bias scales it");
  CAPO_ASSERT(std::ssize(input) == form.tokens * form.hidden, "the input is tokens times hidden");
  CAPO_ASSERT(std::ssize(weights.norm_weight) == norm, "kinds with a norm have its weight");
  CAPO_ASSERT(std::ssize(weights.norm_bias) == norm, "kinds with a norm have its bias");
  CAPO_ASSERT(std::ssize(weights.first) == form.groups * first.out * first.in,
              "every group has a weight");
  CAPO_ASSERT(std::ssize(weights.first_bias) == bias * form.groups * first.out,
              "with a bias every group has one");
  CAPO_ASSERT(std::ssize(weights.second) == two * second.out * second.in,
              "every group of a kind with two products has a second weight");
  CAPO_ASSERT(std::ssize(weights.second_bias) == bias * two * second.out,
              "with a bias every group of a kind with two products has a second one");

  if (has_groups(kind) && !side.sizes.empty()) {
    CAPO_ASSERT(std::ssize(side.sizes) == form.groups, "every group has a size");
    CAPO_ASSERT(*std::min_element(side.sizes.begin(), side.sizes.end()) >= 0,
                "no group has fewer than no rows");
    CAPO_ASSERT(
        std::accumulate(side.sizes.begin(), side.sizes.end(), std::int64_t{0}) <= form.tokens,
        "the rows of all groups are among the tokens");
  }
  CAPO_ASSERT(kind != ModuleKind::GroupedMlp || std::ssize(side.probabilities) == form.tokens,
              "every row of a grouped-mlp has a probability");
  CAPO_ASSERT(!form.scale_bias || std::ssize(side.scales) == form.tokens,
              "where the bias is scaled every row has a scale");
}

void check(const LayerForm& form, const LayerForward& saved, const Values& grad_output) {
  const std::int64_t norm = begins_with_norm(form) ? form.hidden : 0;
  const std::int64_t two =
      has_two_products(form.kind) ? form.tokens * rows_of_token(form, Place::First) : 0;
  CAPO_ASSERT(std::ssize(saved.normed) == form.tokens * norm, "a norm's output was saved");
  CAPO_ASSERT(std::ssize(saved.middle) == two * middle_columns(form),
              "the first of two products was saved");
  CAPO_ASSERT(std::ssize(saved.active) == two * active_columns(form),
              "what the second of two products reads was saved");
  CAPO_ASSERT(std::ssize(grad_output) == form.tokens * output_columns(form),
              "the gradient is of the output's shape");
}

// The operand of the second product.
Values active_of(const LayerForm& form, const LayerSide& side, const Product& second,
                 const Values& middle, const Store& store) {
  if (attends(form.kind)) {
    return store(
        Place::Active, reference::attention_of(heads_of(form), middle),
        [&](const Values&) { return reference::attention_magnitudes(heads_of(form), middle); });
  }
  return store(Place::Active, reference::swiglu_of(second, middle, probabilities_of(form, side)),
               absolute);
}

// The gradient of an MLP's middle; that of its probabilities goes to the result.
Values swiglu_backward(const LayerForm& form, const LayerSide& side, const Product& second,
                       const Values& middle, const Values& grad_active, const Store& store,
                       LayerBackward& result) {
  reference::SwigluGradients swiglu =
      reference::swiglu_gradients(second, middle, probabilities_of(form, side), grad_active);
  if (form.kind == ModuleKind::GroupedMlp) {
    result.grad_probabilities = stored(swiglu.probabilities, DataType::Fp32, store.rounding());
    result.probability_magnitudes = std::move(swiglu.magnitudes);
  }
  return store(Place::GradMiddle, std::move(swiglu.middle), absolute);
}

}  // namespace

LayerForward forward(const LayerForm& form, const LayerWeights& weights, const LayerSide& side,
                     const std::vector<double>& input, Rounding rounding, Edges* edges) {
  check(form, weights, side, input);
  const Store store(form, rounding, edges);
  if (routes(form.kind)) return routed_forward(form, weights, side, input, store);
  LayerForward result;
  if (begins_with_norm(form)) {
    Values normed = reference::norm_of(input, weights.norm_weight, weights.norm_bias);
    result.normed = store(Place::Normed, std::move(normed), absolute);
  }

  const auto biased = [&](Place place, const Product& p, const Values& y, const Values& bias,
                          const Values& scales) {
    return store(place, reference::with_bias(p, y, bias, scales), [&](const Values&) {
      return reference::with_bias(p, absolute(y), absolute(bias), absolute(scales));
    });
  };
  const Product first = first_product(form, side);
  const Values& x = begins_with_norm(form) ? result.normed : input;
  Values y = store.output(Place::First, first, x, weights.first);
  if (form.bias) {
    y = biased(Place::FirstBiased, first, y, weights.first_bias, scales_of(form, side));
  }

  if (has_two_products(form.kind)) {
    const Product second = second_product(form, side);
    result.middle = std::move(y);
    result.active = active_of(form, side, second, result.middle, store);
    y = store.output(Place::Second, second, result.active, weights.second);
    if (form.bias) {
      y = biased(Place::SecondBiased, second, y, weights.second_bias, Values(form.tokens, 1));
    }
  }
  if (form.half) {
    y = store(Place::Combined, sum_of(y, input),
              [&](const Values&) { return sum_of(absolute(y), absolute(input)); });
  }
  result.output = std::move(y);
  return result;
}

LayerBackward backward(const LayerForm& form, const LayerWeights& weights, const LayerSide& side,
                       const std::vector<double>& input, const LayerForward& saved,
                       const std::vector<double>& grad_output, Rounding rounding, Edges* edges,
                       Wanted wanted) {
  check(form, weights, side, input);
  check(form, saved, grad_output);
  const Store store(form, rounding, edges);
  if (routes(form.kind)) {
    return routed_backward(form, weights, input, saved, grad_output, store, wanted);
  }
  const bool for_weights = wanted != Wanted::InputGradient;
  LayerBackward result;
  Values dy = grad_output;  // of the second product, then of the first

  if (has_two_products(form.kind)) {
    const Product second = second_product(form, side);
    if (for_weights) result.grads.second = store.weight_gradient(second, dy, saved.active);
    if (for_weights && form.bias) {
      const Values ones(form.tokens, 1);
      result.grads.second_bias = reference::bias_gradient(second, dy, ones);
      result.magnitudes.second_bias = reference::bias_gradient(second, absolute(dy), ones);
    }
    const Values grad_active = store.input_gradient(Place::GradActive, second, dy, weights.second);
    if (attends(form.kind)) {
      const reference::AttentionGradients attention =
          reference::attention_gradients(heads_of(form), saved.middle, saved.active, grad_active);
      dy = store(Place::GradMiddle, attention.qkv,
                 [&](const Values&) { return attention.magnitudes; });
    } else {
      dy = swiglu_backward(form, side, second, saved.middle, grad_active, store, result);
    }
  }

  const Product first = first_product(form, side);
  const Values& x = begins_with_norm(form) ? saved.normed : input;
  if (for_weights) result.grads.first = store.weight_gradient(first, dy, x);
  if (for_weights && form.bias) {
    const Values scales = scales_of(form, side);
    result.grads.first_bias = reference::bias_gradient(first, dy, scales);
    result.magnitudes.first_bias = reference::bias_gradient(first, absolute(dy), absolute(scales));
  }
  if (wanted == Wanted::WeightGradients) return result;
  if (form.scale_bias) {
    result.grad_scales =
        stored(reference::scale_gradient(first, dy, weights.first_bias), DataType::Fp32, rounding);
  }
  const bool norm = begins_with_norm(form);
  Values dx =
      store.input_gradient(norm ? Place::GradNormed : Place::GradInput, first, dy, weights.first);

  if (norm) {
    reference::NormGradients gradients = reference::norm_gradients(input, weights.norm_weight, dx);
    result.grads.norm_weight = std::move(gradients.weight);
    result.grads.norm_bias = std::move(gradients.bias);
    result.magnitudes.norm_weight = std::move(gradients.weight_magnitudes);
    result.magnitudes.norm_bias = std::move(gradients.bias_magnitudes);
    result.grad_input_magnitudes = std::move(gradients.magnitudes);
    dx = store(Place::GradInput, std::move(gradients.input),
               [&](const Values&) { return result.grad_input_magnitudes; });
  } else {
    result.grad_input_magnitudes = dx;
  }
  if (form.half) {
    result.grad_input_magnitudes =
        sum_of(std::move(result.grad_input_magnitudes), absolute(grad_output));
    dx = store(Place::GradSum, sum_of(dx, grad_output),
               [&](const Values&) { return sum_of(absolute(dx), absolute(grad_output)); });
  }
  result.grad_input = std::move(dx);
  return result;
}

}  // namespace capo::run::reference
