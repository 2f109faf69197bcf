// A whole step in float64: every stage of every microbatch, forward and backward, and the sums of
// the gradients in the order in which the step adds them.
//
// Knows the pipeline (which stage feeds which) and the order of the weight gradients; knows nothing
// of plans, programs, buffers or engines. Exchanges of tokens are left out: what is sent to experts
// comes back as it was. Tested by tests/run/reference/step_reference_test.cpp.

#pragma once

#include <capo/run/reference/layer_reference.h>
#include <capo/run/setup/given.h>
#include <capo/run/setup/step_layers.h>

#include <cstdint>
#include <vector>

namespace capo::run {

struct StepReference {
  std::vector<std::vector<double>> gradients;    ///< by parameter: added as the step adds them
  std::vector<std::vector<double>> ascending;    ///< added microbatch by microbatch, unrounded
  std::vector<std::vector<double>> grad_inputs;  ///< by cell: that of its first layer
};

/// `parameters`: by parameter, as stored.
[[nodiscard]] StepReference reference_of(const PlannedStep& step, const StepLayers& layers,
                                         const std::vector<std::vector<float>>& parameters,
                                         const GivenValues& given, reference::Rounding rounding);

/// Rows of a layer's microbatch that there are.
[[nodiscard]] std::int64_t live_rows(const LayerShape& shape, const GivenValues::Side& side);

}  // namespace capo::run
