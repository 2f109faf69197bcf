// A whole step in float64: forward and backward of every layer and microbatch, the tensors that
// they hand on, and the sums of the gradients in the order in which the step adds them.
//
// Each layer starts from the tensor that the engine stored in front of it, where everything is
// rounded: a number on the edge of a rounding goes either way, and after a few norms such a
// difference would hide all others. So layers are compared one by one, and the output of one with
// the input that the next one read (`handed_on`), which finds a step that is wired wrongly. Within
// a layer, where no tensor is kept to start from, such a number is looked for if what the layer
// made is beyond its bound (other_ways.h), and then goes the engine's way in all that follows.
//
// It knows the pipeline (which stage feeds which) and the order of the weight gradients, and
// nothing of plans, programs, buffers or engines. Exchanges of tokens are left out, since they
// bring back what they took; where layers compute in between, these read rows of all members, by
// the table of rows that the step is given, and what they made goes back by it. No rounding is
// looked for in what goes over ranks. Tested by tests/run/reference/step_reference_test.cpp and
// tests/run/steps/experts_test.cpp.

#pragma once

#include "run/execute/step_inputs.h"
#include "run/reference/layer_reference.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <vector>

namespace capo::run {

/// The operands that every layer read, by layer and microbatch, as the engine stored them.
struct StoredOperands {
  std::vector<std::vector<std::vector<float>>> inputs;
  std::vector<std::vector<std::vector<float>>> grad_outputs;
  /// The groups that each token chose; empty for layers without a router.
  std::vector<std::vector<std::vector<std::int64_t>>> choices;
  /// The numbers between the halves of a transformer layer, and their gradient; empty for other
  /// layers.
  std::vector<std::vector<std::vector<float>>> sums;
  std::vector<std::vector<std::vector<float>>> sum_gradients;
  /// For each cell the rows in use of the input's gradient, where it leaves the step; else empty.
  std::vector<std::vector<float>> given_out;
};

/// A tensor that a layer read: a given one, or what the layer below or the stage before made; or
/// the choices of its router, whose error is the share of tokens that cannot have chosen so; or
/// what one half of it made for the other.
struct HandedOn {
  std::size_t layer = 0;  ///< the reader
  std::int32_t microbatch = 0;
  bool gradient = false;  ///< of its output, else its input
  bool choices = false;
  bool between = false;  ///< between its halves; `gradient` says which of both
  double error = 0;      ///< relative
  double bound = 0;
  double element_error = 0;   ///< of a sample: its worst element's, by worst_element()
  std::int64_t elements = 0;  ///< of a sample: so many
};

struct StepReference {
  std::vector<std::vector<double>> gradients;  ///< by parameter, added as the step adds them
  std::vector<std::vector<double>> ascending;  ///< added microbatch by microbatch, unrounded
  /// Sums of the absolute values of the addends, by parameter.
  std::vector<std::vector<double>> magnitudes;
  std::vector<std::vector<double>> grad_inputs;            ///< by cell: that of its first layer
  std::vector<std::vector<double>> grad_input_magnitudes;  ///< sums of absolute values of its terms
  struct Side {
    std::vector<double> probabilities;
    std::vector<double> magnitudes;  ///< sums of absolute values of the terms of `probabilities`
    std::vector<double> scales;
  };
  std::vector<std::vector<Side>> sides;  ///< by layer and microbatch: gradients of both
  std::vector<HandedOn> handed_on;
  std::size_t other_ways = 0;  ///< roundings that went another way than float64's
};

/// `parameters` lists the stored values of each parameter.
[[nodiscard]] StepReference reference_of(const PlannedStep& step, const StepLayers& layers,
                                         const std::vector<std::vector<float>>& parameters,
                                         const StepValues& given, const StoredOperands& stored);

}  // namespace capo::run
