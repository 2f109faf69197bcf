// A whole step in float64: every layer of every microbatch, forward and backward, what it hands to
// the next, and the sums of the gradients in the order in which the step adds them.
//
// Each layer goes on from what the engine stored in front of it, as everything is rounded there: a
// number on the edge of a rounding goes either way, and behind a few norms such a difference would
// be all that is seen. So layers are compared one by one, and what one makes with what the next one
// read (`handed_on`), which is how a step that is wired wrongly is found.
//
// Knows the pipeline (which stage feeds which) and the order of the weight gradients; knows nothing
// of plans, programs, buffers or engines. Exchanges of tokens are left out: what is sent to experts
// comes back as it was. Tested by tests/run/reference/step_reference_test.cpp.

#pragma once

#include "run/reference/layer_reference.h"
#include "run/setup/given.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <vector>

namespace capo::run {

/// What every layer read, by layer and microbatch, as the engine stored it.
struct StoredOperands {
  std::vector<std::vector<std::vector<float>>> inputs;
  std::vector<std::vector<std::vector<float>>> grad_outputs;
};

struct StepReference {
  std::vector<std::vector<double>> gradients;  ///< by parameter: added as the step adds them
  std::vector<std::vector<double>> ascending;  ///< added microbatch by microbatch, unrounded
  /// By parameter: the sums of the absolute values of what is added.
  std::vector<std::vector<double>> magnitudes;
  std::vector<std::vector<double>> grad_inputs;            ///< by cell: that of its first layer
  std::vector<std::vector<double>> grad_input_magnitudes;  ///< and of what it is the sum of
  struct Side {
    std::vector<double> probabilities;
    std::vector<double> magnitudes;  ///< of what those are the sums of
    std::vector<double> scales;
  };
  std::vector<std::vector<Side>> sides;  ///< by layer and microbatch: gradients of both
  /// The largest relative error of what a layer read from what is in front of it: of given
  /// tensors, the layer below, the stage before.
  double handed_on = 0;
};

/// `parameters`: by parameter, as stored.
[[nodiscard]] StepReference reference_of(const PlannedStep& step, const StepLayers& layers,
                                         const std::vector<std::vector<float>>& parameters,
                                         const GivenValues& given, const StoredOperands& stored);

/// Rows of a layer's microbatch that there are.
[[nodiscard]] std::int64_t live_rows(const LayerShape& shape, const GivenValues::Side& side);

}  // namespace capo::run
