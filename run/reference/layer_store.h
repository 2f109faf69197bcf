// A store keeps the tensors of a layer in float64 as a module would store them, and knows which of
// their values are on the edge of a rounding.
//
// It is private to the files of layer_reference.h. Tested by layer_by_hand_test.cpp and
// other_ways_test.cpp.

#pragma once

#include "run/reference/layer_form.h"
#include "run/reference/layer_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace capo::run::reference {

/// Rounds values as a module does when it writes them.
inline Values stored(Values values, DataType type, Rounding rounding) {
  if (rounding == Rounding::Exact) return values;
  std::transform(values.begin(), values.end(), values.begin(), Rounder(type));
  return values;
}

/// Tells whether a sum that is off by `error` may be rounded to the second nearest.
[[nodiscard]] inline bool is_near(double value, double error, DataType type) {
  if (value == 0 || !std::isfinite(value)) return false;
  const Rounder rounder(type);
  const double half = power_of_two(rounder.step(value)) / 2;
  return half - std::abs(value - rounder(value)) <= error;
}

/// Stores the tensors of a layer, and knows which of their values are on the edge of a rounding.
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
    const Values rows = coded_rows(coding_, x, p.in);
    if (form_.weights_are_coded) return product(place, p, rows, w, reference::output_of);
    return product(place, p, rows, coded_along_in(coding_, p, w), reference::output_of);
  }
  Values input_gradient(Place place, const Product& p, const Values& dy, const Values& w) const {
    if (coding_ == Coding::None) return product(place, p, dy, w, reference::input_gradient);
    const Values rows = coded_rows(coding_, dy, p.out);
    if (form_.weights_are_coded) return product(place, p, rows, w, reference::input_gradient);
    return product(place, p, rows, coded_along_out(coding_, p, w), reference::input_gradient);
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

inline Values sum_of(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// A router, its experts and the residual sum around them (routed_reference.cpp), which layers with
/// one have in common.
[[nodiscard]] LayerForward routed_forward(const LayerForm& form, const LayerWeights& weights,
                                          const LayerSide& side, const Values& input,
                                          const Store& store);
[[nodiscard]] LayerBackward routed_backward(const LayerForm& form, const LayerWeights& weights,
                                            const Values& input, const LayerForward& saved,
                                            const Values& grad_output, const Store& store,
                                            Wanted wanted);

}  // namespace capo::run::reference
