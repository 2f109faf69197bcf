// The roundings of a layer that an engine took the other way, found from what the engine made.
//
// If a result is beyond its bound, its worst rows are computed again, one by one. The values of a
// row that are on the edge of a rounding (layer_reference.h) are tried the other way, one after the
// other, and whatever brings the row nearest to the engine's is kept. If the result is beyond its
// bound even so, none is. A wrong value passes only where it is one that a right engine could have
// made. Rows are computed again only as long as that can bring the result within its bound, which
// it cannot where a NaN stands for a number, or where more rows are wrong than are tried.
//
// Rows of results depend on nothing but their own row of operands, which is why each is a layer of
// its own here; those of an attention on their sequence, which is such a layer then. Tested by
// tests/run/reference/other_ways_test.cpp.

#pragma once

#include "run/reference/layer_reference.h"

#include <span>
#include <vector>

namespace capo::run::reference {

/// A layer and its operands. All members outlive it.
struct LayerRun {
  const LayerForm& form;
  const LayerWeights& weights;
  const LayerSide& side;
  const std::vector<double>& input;
  /// Null: the result is the output, else it is the gradient of the input.
  const std::vector<double>* grad_output = nullptr;
};

/// A result as an engine made it, beside what float64 makes of it.
struct Made {
  std::span<const double> should;
  std::span<const float> is;
  std::span<const double> sizes;  ///< what the error of each is relative to
  double bound = 0;
};

/// In the order in which they were found; empty if they do not bring the result within its bound.
/// `known` are those that went into `made.should`.
[[nodiscard]] std::vector<Edge> other_ways(const LayerRun& run, const std::vector<Edge>& known,
                                           const Made& made);

}  // namespace capo::run::reference
