// A router, its experts and the residual sum around them in float64, by layer_reference.h.
//
// Tested by finite_differences_test.cpp and tests/run/steps/routed_runs_test.cpp.

#pragma once

#include "run/reference/layer_form.h"
#include "run/reference/layer_store.h"

namespace capo::run::reference {

[[nodiscard]] LayerForward routed_forward(const LayerForm& form, const LayerWeights& weights,
                                          const LayerSide& side, const Values& input,
                                          const Store& store);
[[nodiscard]] LayerBackward routed_backward(const LayerForm& form, const LayerWeights& weights,
                                            const Values& input, const LayerForward& saved,
                                            const Values& grad_output, const Store& store,
                                            Wanted wanted);

}  // namespace capo::run::reference
