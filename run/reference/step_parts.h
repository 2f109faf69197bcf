// The parts that the float64 reference of a step and that of a sample of it have in common: a
// layer's form, its parameters by role, and the sums of gradients in the order in which the step
// adds them.
//
// Tested by tests/run/reference/step_reference_test.cpp.

#pragma once

#include "run/execute/step_inputs.h"
#include "run/reference/layer_reference.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <vector>

namespace capo::run {

/// The layer has no halves, or this is one half of a transformer layer.
[[nodiscard]] reference::LayerForm form_of(const LayerShape& shape);

/// Codes next to each other are at most an eighth apart. An engine that rounds an operand to the
/// other of two neighbours in bf16, since it adds in an order of its own, may so read the next code
/// of it; of few rows and columns as many operands may be concerned as make the difference.
inline constexpr double kCodedBound = 0x1p-3;
/// The bound of the error of what a layer makes. One product of codes of what was given is as near
/// as one of bf16, though units that multiply codes add in fewer digits than fp32 has.
[[nodiscard]] double error_bound(const LayerShape& shape);

/// A parameter or gradient of a layer or a half by its role, one of kHalfRoles.
template <typename Weights>
auto& of_role(Weights& weights, Role role) {
  switch (role) {
    case Role::NormWeight:
      return weights.norm_weight;
    case Role::NormBias:
      return weights.norm_bias;
    case Role::Router:
      return weights.router;
    case Role::First:
      return weights.first;
    case Role::FirstBias:
      return weights.first_bias;
    case Role::Second:
      return weights.second;
    default:  // of kHalfRoles
      return weights.second_bias;
  }
}

[[nodiscard]] std::vector<double> widened(const std::vector<float>& values);

/// Rows of a layer's microbatch that exist.
[[nodiscard]] std::int64_t live_rows(const LayerShape& shape, const StepValues::Side& side);

/// A parameter's gradient has this added by each microbatch; by parameter and microbatch. It is all
/// of its elements, or the same ones of each microbatch.
using Contributions = std::vector<std::vector<std::vector<double>>>;

/// The sums of the elements that are contributed, by parameter.
struct GradientSums {
  std::vector<std::vector<double>> gradients;   ///< added as the step adds them
  std::vector<std::vector<double>> ascending;   ///< added microbatch by microbatch, unrounded
  std::vector<std::vector<double>> magnitudes;  ///< sums of the absolute values of the addends
};

[[nodiscard]] GradientSums sums_of(const PlannedStep& step, const StepLayers& layers,
                                   const Contributions& contributions);

/// Adds the gradients of replicas to the first one's, rank by rank, where the step reduces them,
/// and gives the sum to all.
void reduce(const PlannedStep& step, const StepLayers& layers, GradientSums& sums);

}  // namespace capo::run
