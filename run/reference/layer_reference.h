// One layer in float64 gives the results that every engine's forward and backward must reach.
//
//   linear, x = (1, 2), w = ((1, 0), (0, 3))   ->   y = (1, 6)
//
// It is written from the formulas in kernels/call.h and docs/run.md and from nothing else, with
// plain loops over vectors of double. It shares no code with any kernel, and no facts with
// core/model/module_kinds.h, so that it stays a second opinion. With Rounding::AsStored every value
// is rounded where a module writes it to memory, so that what is left of a difference is the
// engine's arithmetic; with Rounding::Exact nothing is rounded, and finite differences must agree.
// A value on the edge of a rounding has two results that are right: Edges below.
//
// A router jumps on such an edge: two logits that are nearly equal are chosen in one order by an
// engine and in the other here, and all that follows differs. So it takes the choices that the run
// made, if it is told them, and says of each token whether they were admissible: some numbers
// within the errors of the logits, stored, must be in that order, equal ones lower group first.
// Rows of experts lie here by token, not by group: an engine's order of them is not its concern.
//
// Tested by tests/run/reference/: finite_differences_test.cpp, layer_by_hand_test.cpp.

#pragma once

#include "run/reference/layer_form.h"

#include <cstdint>
#include <vector>

namespace capo::run::reference {

/// `edges`: which roundings go the other way, null if none do; and it gets those that could.
[[nodiscard]] LayerForward forward(const LayerForm& form, const LayerWeights& weights,
                                   const LayerSide& side, const std::vector<double>& input,
                                   Rounding rounding, Edges* edges = nullptr);

/// `saved`: what the forward of the same microbatch came to. What is not wanted is empty.
[[nodiscard]] LayerBackward backward(const LayerForm& form, const LayerWeights& weights,
                                     const LayerSide& side, const std::vector<double>& input,
                                     const LayerForward& saved,
                                     const std::vector<double>& grad_output, Rounding rounding,
                                     Edges* edges = nullptr, Wanted wanted = Wanted::All);

/// Blocks of weights lie along what a product sums over: in the one direction or in the other.
enum class Direction : std::uint8_t { Forward, InputGradient };

/// The weights with those of products as the numbers that their codes stand for. Whoever makes a
/// layer again and again codes its weights once, and says so in its form.
[[nodiscard]] LayerWeights coded_weights(const LayerForm& form, LayerWeights weights,
                                         Direction direction);

}  // namespace capo::run::reference
