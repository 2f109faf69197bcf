#include "run/reference/layer_reference.h"
#include "core/base/assert.h"
#include "run/reference/layer_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

namespace capo::run::reference {

namespace {

// Rounds values as a module does when it writes them.
Values stored(Values values, DataType type, Rounding rounding) {
  if (rounding == Rounding::Exact) return values;
  std::transform(values.begin(), values.end(), values.begin(), Rounder(type));
  return values;
}

Values absolute(Values values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

// Tells whether a sum that is off by `error` may be rounded to the second nearest.
bool is_near(double value, double error, DataType type) {
  if (value == 0 || !std::isfinite(value)) return false;
  const Rounder rounder(type);
  const double half = power_of_two(rounder.step(value)) / 2;
  return half - std::abs(value - rounder(value)) <= error;
}

// Stores the tensors of a layer, and knows which of their values are on the edge of a rounding.
class Store {
 public:
  Store(const LayerForm& form, Rounding rounding, Edges* edges)
      : form_(form),
        rounding_(rounding),
        coding_(rounding == Rounding::AsStored ? form.coding : Coding::None),
        edges_(edges) {}

  // `sizes` makes of values the sums of the absolute values of their terms; called only where
  // somebody looks for edges.
  template <typename Sizes>
  Values operator()(Place place, Values values, Sizes sizes) const {
    if (edges_ == nullptr) return stored(std::move(values), form_.type, rounding_);
    const Values exact = values;
    const std::int64_t columns = std::ssize(values) / (form_.tokens * rows_of_token(form_, place));
    if (edges_->look) look(place, exact, sizes(exact), columns);
    values = stored(std::move(values), form_.type, rounding_);
    for (const Edge& edge : edges_->other_way) {
      if (edge.place != place) continue;
      const std::int64_t at = edge.row * columns + edge.column;
      values[at] = rounded_other_way(exact[at], form_.type);
    }
    return values;
  }

  // Products of matrices, and their gradients by the first and by the second.
  Values output(Place place, const Product& p, const Values& x, const Values& w) const {
    if (coding_ == Coding::None) return product(place, p, x, w, reference::output_of);
    return product(place, p, coded_rows(coding_, x, p.in), coded_along_in(coding_, p, w),
                   reference::output_of);
  }
  Values input_gradient(Place place, const Product& p, const Values& dy, const Values& w) const {
    if (coding_ == Coding::None) return product(place, p, dy, w, reference::input_gradient);
    return product(place, p, coded_rows(coding_, dy, p.out), coded_along_out(coding_, p, w),
                   reference::input_gradient);
  }
  [[nodiscard]] Values weight_gradient(const Product& p, const Values& dy, const Values& x) const {
    if (coding_ == Coding::None) return reference::weight_gradient(p, dy, x);
    return reference::weight_gradient(p, coded_columns(coding_, p, dy, p.out),
                                      coded_columns(coding_, p, x, p.in));
  }

  [[nodiscard]] Rounding rounding() const { return rounding_; }

 private:
  template <typename Multiply>
  Values product(Place place, const Product& p, const Values& a, const Values& b,
                 Multiply multiply) const {
    return (*this)(place, multiply(p, a, b),
                   [&](const Values&) { return multiply(p, absolute(a), absolute(b)); });
  }

  void look(Place place, const Values& values, const Values& sizes, std::int64_t columns) const {
    for (std::int64_t at = 0; at < std::ssize(values); ++at) {
      if (!is_near(values[at], kNear * sizes[at], form_.type)) continue;
      edges_->near.push_back({.place = place, .row = at / columns, .column = at % columns});
    }
  }

  const LayerForm& form_;
  Rounding rounding_;
  Coding coding_;
  Edges* edges_;
};

// The reference tells the kinds apart by itself: a fact that is wrong in core/model/module_kinds.h
// would otherwise be wrong here as well, and agree with what ran.
bool begins_with_norm(ModuleKind kind) {
  return kind == ModuleKind::LayerNormLinear || kind == ModuleKind::LayerNormMlp ||
         kind == ModuleKind::MoeLayer;
}

bool routes(ModuleKind kind) {
  return kind == ModuleKind::MoeLayer;
}

bool attends(ModuleKind kind) {
  return kind == ModuleKind::Attention;
}

bool has_two_products(ModuleKind kind) {
  return kind == ModuleKind::LayerNormMlp || kind == ModuleKind::GroupedMlp || attends(kind) ||
         routes(kind);
}

bool has_groups(ModuleKind kind) {
  return kind == ModuleKind::GroupedLinear || kind == ModuleKind::GroupedLinearOp ||
         kind == ModuleKind::GroupedMlp;
}

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
  const std::int64_t norm = begins_with_norm(kind) ? form.hidden : 0;
  const std::int64_t two = has_two_products(kind) ? form.groups : 0;
  const std::int64_t bias = form.bias ? 1 : 0;

  CAPO_ASSERT(kind != ModuleKind::TransformerLayer,
              "several modules have no reference of their own");
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
  const std::int64_t norm = begins_with_norm(form.kind) ? form.hidden : 0;
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

Values sum_of(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

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
    result.grads.second = reference::weight_gradient(products.second, dy, saved.active);
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
  const Values grad_logits =
      store(Place::GradLogits,
            by_logits(stored(swiglu.probabilities, DataType::Fp32, store.rounding())).logits,
            [&](const Values&) { return by_logits(swiglu.magnitudes).magnitudes; });
  if (for_weights) {
    const Values rows = reference::repeated(saved.normed, form.hidden, form.top_k);
    result.grads.first = reference::weight_gradient(products.first, grad_middle, rows);
    result.grads.router = reference::weight_gradient(products.router, grad_logits, saved.normed);
  }
  if (wanted == Wanted::WeightGradients) return result;

  const Values grad_rows =
      store.input_gradient(Place::GradRows, products.first, grad_middle, weights.first);
  const Values grad_routed =
      store.input_gradient(Place::GradRouted, products.router, grad_logits, weights.router);
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
  const Values dx = store(Place::GradInput, std::move(norm.input),
                          [&](const Values&) { return norm.magnitudes; });
  result.grad_input_magnitudes = sum_of(std::move(norm.magnitudes), absolute(grad_output));
  result.grad_input = store(Place::GradSum, sum_of(dx, grad_output), [&](const Values&) {
    return sum_of(absolute(dx), absolute(grad_output));
  });
  return result;
}

}  // namespace

std::int64_t rows_of_one_result(const LayerForm& form) {
  return attends(form.kind) ? form.sequence : 1;
}

std::int64_t rows_of_token(const LayerForm& form, Place place) {
  using enum Place;
  const bool of_experts = place == First || place == Active || place == Second ||
                          place == GradActive || place == GradMiddle || place == GradRows;
  return routes(form.kind) && of_experts ? form.top_k : 1;
}

std::int64_t output_columns(const LayerForm& form) {
  return has_two_products(form.kind) ? form.hidden : form.ffn;
}

LayerForward forward(const LayerForm& form, const LayerWeights& weights, const LayerSide& side,
                     const std::vector<double>& input, Rounding rounding, Edges* edges) {
  check(form, weights, side, input);
  const Store store(form, rounding, edges);
  if (routes(form.kind)) return routed_forward(form, weights, side, input, store);
  LayerForward result;
  if (begins_with_norm(form.kind)) {
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
  const Values& x = begins_with_norm(form.kind) ? result.normed : input;
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
    if (for_weights && form.bias)
      result.grads.second_bias = reference::bias_gradient(second, dy, Values(form.tokens, 1));
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
  const Values& x = begins_with_norm(form.kind) ? saved.normed : input;
  if (for_weights) result.grads.first = store.weight_gradient(first, dy, x);
  if (for_weights && form.bias)
    result.grads.first_bias = reference::bias_gradient(first, dy, scales_of(form, side));
  if (wanted == Wanted::WeightGradients) return result;
  if (form.scale_bias) {
    result.grad_scales =
        stored(reference::scale_gradient(first, dy, weights.first_bias), DataType::Fp32, rounding);
  }
  const bool norm = begins_with_norm(form.kind);
  Values dx =
      store.input_gradient(norm ? Place::GradNormed : Place::GradInput, first, dy, weights.first);

  if (norm) {
    reference::NormGradients gradients = reference::norm_gradients(input, weights.norm_weight, dx);
    result.grads.norm_weight = std::move(gradients.weight);
    result.grads.norm_bias = std::move(gradients.bias);
    result.grad_input_magnitudes = std::move(gradients.magnitudes);
    dx = store(Place::GradInput, std::move(gradients.input),
               [&](const Values&) { return result.grad_input_magnitudes; });
  } else {
    result.grad_input_magnitudes = dx;
  }
  result.grad_input = std::move(dx);
  return result;
}

}  // namespace capo::run::reference
