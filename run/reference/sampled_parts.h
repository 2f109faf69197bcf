// A sample of a step as its two halves share it: rows of what layers hand on
// (sampled_reference.cpp), and columns of the gradients of weights (sampled_columns.cpp).
//
// Tested by tests/run/reference/sampled_reference_test.cpp.

#pragma once

#include "run/reference/float_sample.h"
#include "run/reference/step_parts.h"
#include "run/reference/step_reference.h"
#include "run/setup/parameters.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace capo::run {

/// The operands that layers read, as the engine stored them: whole rows.
struct StoredRows {
  std::function<std::vector<float>(std::size_t layer, std::int32_t microbatch, bool gradient,
                                   std::int64_t first, std::int64_t count)>
      operands;
  /// A row of the input's gradient that leaves the step; null if the cell's does not.
  std::function<std::vector<float>(std::uint32_t cell, std::int64_t row)> given_out;
};

/// Elements of a tensor, by their index in it.
struct SampledTensor {
  std::vector<std::int64_t> at;
  std::vector<double> should;
  std::vector<double> sizes;  ///< what the error of each is relative to
  std::vector<double> ascending = {};
  std::int64_t columns = 1;  ///< so many of them are of one row
};

struct SampledReference {
  std::vector<HandedOn> handed_on;         ///< of their rows
  std::vector<SampledTensor> gradients;    ///< by parameter; those of norms may be empty
  std::vector<SampledTensor> grad_inputs;  ///< by cell; empty if it does not leave the step
  struct Side {
    SampledTensor probabilities;
    SampledTensor scales;
  };
  std::vector<std::vector<Side>> sides;  ///< by layer and microbatch
  std::size_t other_ways = 0;
};

/// All that it is taken of, which outlives it, and all that it makes.
struct SampledStep {
  const StepLayers& layers;
  const std::vector<DrawnTensor>& parameters;
  const StepValues& given;
  const StoredRows& stored;
  const FloatSample& sample;
  std::int32_t microbatches = 0;
  SampledReference result = {};
  Contributions contributions = {};      ///< to the elements of gradients that are in the sample
  reference::LayerWeights weights = {};  ///< of the rows or columns at hand, which may be gigabytes

  [[nodiscard]] const StepLayer& layer(std::size_t number) const { return layers.all()[number]; }
  [[nodiscard]] const StepValues::Side& side(std::size_t number, std::int32_t microbatch) const {
    return given.sides[number][MicrobatchId(microbatch).index()];
  }
};

/// A group has so many rows, which begin there among those of its microbatch.
struct GroupRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// The side of some rows as those of one group.
[[nodiscard]] reference::LayerSide side_of_rows(const StepValues::Side& side, GroupRows rows);

/// Appends the numbers of a slice, without a second copy of a tensor that is gigabytes.
void append(std::vector<double>& to, const DrawnTensor& from, Slice slice);

/// Adds the columns in the sample of a layer's weights to the contributions, and their places to
/// the result.
void take_columns(SampledStep& step, std::size_t number);

}  // namespace capo::run
