// A sample of a step as its two halves share it: rows of what layers hand on
// (sampled_reference.cpp), and columns of the gradients of weights (sampled_columns.cpp).
//
// Tested by tests/run/reference/sampled_reference_test.cpp.

#pragma once

#include "run/reference/sampled_reference.h"
#include "run/setup/parameters.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

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
