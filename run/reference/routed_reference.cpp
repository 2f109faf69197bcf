// A router and its experts in float64. Under a recipe the experts' products are of codes, and the
// router's are of the numbers themselves.

#include "run/reference/layer_store.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace capo::run::reference {

namespace {

// The products of a moe-layer.
struct RoutedProducts {
  RoutedProducts(const LayerForm& form, std::vector<std::int64_t> choices)
      : router{.group = std::vector<std::int64_t>(form.tokens, 0),
               .rows = form.tokens,
               .groups = 1,
               .in = form.hidden,
               .out = form.groups},
        first{.group = std::move(choices),
              .rows = form.tokens * form.top_k,
              .groups = form.groups,
              .in = form.hidden,
              .out = 2 * form.ffn},
        second{.group = first.group,
               .rows = first.rows,
               .groups = form.groups,
               .in = form.ffn,
               .out = form.hidden} {}

  Product router;
  Product first;
  Product second;
};

// How far the logits of an engine may be off: by the error of a sum, and by a step of each number
// of the norm that it may have rounded the other way.
Values logit_errors(const LayerForm& form, const LayerWeights& weights, const Values& normed,
                    const Values& sizes, Rounding rounding) {
  Values steps(normed.size());
  for (std::int64_t i = 0; rounding == Rounding::AsStored && i < std::ssize(normed); ++i) {
    const double bias = weights.norm_bias[i % form.hidden];
    const double error = kNear * (std::abs(normed[i] - bias) + std::abs(bias));
    if (is_near(normed[i], error, form.type)) {
      steps[i] = power_of_two(Rounder(form.type).step(normed[i]));
    }
  }
  Values errors =
      reference::output_of(RoutedProducts(form, {}).router, steps, absolute(weights.router));
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += kNear * sizes[i];
  return errors;
}

}  // namespace

LayerForward routed_forward(const LayerForm& form, const LayerWeights& weights,
                            const LayerSide& side, const Values& input, const Store& store) {
  LayerForward result;
  const Values normed = reference::norm_of(input, weights.norm_weight, weights.norm_bias);
  result.normed = store(Place::Normed, normed, absolute);
  const Product router = RoutedProducts(form, {}).router;
  const Values exact = reference::output_of(router, result.normed, weights.router);
  const Values sizes =
      reference::output_of(router, absolute(result.normed), absolute(weights.router));
  result.logits = store(Place::Logits, exact, [&](const Values&) { return sizes; });
  const Router of{.groups = form.groups, .top_k = form.top_k};
  const std::vector<std::int64_t> own = reference::greatest_of(of, result.logits);
  const std::vector<std::int64_t>& choices = side.choices.empty() ? own : side.choices;
  const Values errors = logit_errors(form, weights, normed, sizes, store.rounding());
  const auto off_by = [&](double way) {
    Values off = exact;
    for (std::size_t i = 0; i < off.size(); ++i) off[i] += way * errors[i];
    return stored(std::move(off), form.type, store.rounding());
  };
  result.refused = reference::refused_choices(of, off_by(-1), off_by(1), choices);
  const bool groups = std::all_of(choices.begin(), choices.end(), [&](std::int64_t group) {
    return group >= 0 && group < form.groups;
  });
  result.choices = groups ? choices : own;
  const RoutedProducts products(form, result.choices);
  const Values rows = reference::repeated(result.normed, form.hidden, form.top_k);
  result.middle = store.output(Place::First, products.first, rows, weights.first);
  const Values probabilities = reference::probabilities_of(of, result.logits, result.choices);
  result.active = store(
      Place::Active, reference::swiglu_of(products.second, result.middle, probabilities), absolute);
  const Values made = store.output(Place::Second, products.second, result.active, weights.second);
  const auto with_input = [&](const Values& x, const Values& rows_made) {
    return sum_of(reference::summed_up(rows_made, form.hidden, form.top_k), x);
  };
  result.output = store(Place::Combined, with_input(input, made),
                        [&](const Values&) { return with_input(absolute(input), absolute(made)); });
  return result;
}

LayerBackward routed_backward(const LayerForm& form, const LayerWeights& weights,
                              const Values& input, const LayerForward& saved,
                              const Values& grad_output, const Store& store, Wanted wanted) {
  const Router of{.groups = form.groups, .top_k = form.top_k};
  const RoutedProducts products(form, saved.choices);
  const bool for_weights = wanted != Wanted::InputGradient;
  LayerBackward result;
  const Values dy = reference::repeated(grad_output, form.hidden, form.top_k);
  if (for_weights) {
    result.grads.second = store.weight_gradient(products.second, dy, saved.active);
  }
  const Values grad_active =
      store.input_gradient(Place::GradActive, products.second, dy, weights.second);
  reference::SwigluGradients swiglu = reference::swiglu_gradients(
      products.second, saved.middle, reference::probabilities_of(of, saved.logits, saved.choices),
      grad_active);
  const Values grad_middle = store(Place::GradMiddle, std::move(swiglu.middle), absolute);
  const auto by_logits = [&](const Values& grad_probabilities) {
    return reference::router_gradients(of, saved.logits, saved.choices, grad_probabilities);
  };
  const auto of_terms = [&] { return by_logits(swiglu.magnitudes).magnitudes; };
  const Values grad_logits =
      store(Place::GradLogits,
            by_logits(stored(swiglu.probabilities, DataType::Fp32, store.rounding())).logits,
            [&](const Values&) { return of_terms(); });
  if (for_weights) {
    const Values rows = reference::repeated(saved.normed, form.hidden, form.top_k);
    result.grads.first = store.weight_gradient(products.first, grad_middle, rows);
    result.grads.router = reference::weight_gradient(products.router, grad_logits, saved.normed);
    result.magnitudes.router =
        reference::weight_gradient(products.router, of_terms(), absolute(saved.normed));
  }
  if (wanted == Wanted::WeightGradients) return result;

  const Values grad_rows =
      store.input_gradient(Place::GradRows, products.first, grad_middle, weights.first);
  const Values grad_routed = store(
      Place::GradRouted, reference::input_gradient(products.router, grad_logits, weights.router),
      [&](const Values&) {
        return reference::input_gradient(products.router, absolute(grad_logits),
                                         absolute(weights.router));
      });
  const auto of_both = [&](const Values& rows, const Values& routed) {
    return sum_of(reference::summed_up(rows, form.hidden, form.top_k), routed);
  };
  const Values grad_normed =
      store(Place::GradNormed, of_both(grad_rows, grad_routed),
            [&](const Values&) { return of_both(absolute(grad_rows), absolute(grad_routed)); });
  reference::NormGradients norm =
      reference::norm_gradients(input, weights.norm_weight, grad_normed);
  result.grads.norm_weight = std::move(norm.weight);
  result.grads.norm_bias = std::move(norm.bias);
  result.magnitudes.norm_weight = std::move(norm.weight_magnitudes);
  result.magnitudes.norm_bias = std::move(norm.bias_magnitudes);
  const Values dx = store(Place::GradInput, std::move(norm.input),
                          [&](const Values&) { return norm.magnitudes; });
  result.grad_input_magnitudes = sum_of(std::move(norm.magnitudes), absolute(grad_output));
  result.grad_input = store(Place::GradSum, sum_of(dx, grad_output), [&](const Values&) {
    return sum_of(absolute(dx), absolute(grad_output));
  });
  return result;
}

}  // namespace capo::run::reference
