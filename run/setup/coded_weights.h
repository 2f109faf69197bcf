// Weights of layers whose products read codes, quantized once before a step, both ways: what
// TransformerEngine's modules cache in the first microbatch of a step.
//
// They belong to the run, as parameters do, and to no plan. Tested by
// tests/run/steps/recipe_runs_test.cpp.

#pragma once

#include "run/setup/parameters.h"
#include "run/setup/step_layers.h"

#include <vector>

namespace capo::run {

/// By parameter; null where no product reads it as codes, or if the engine has no more memory: it
/// keeps the error. The numbers must have been drawn, or be on their way on the first stream.
[[nodiscard]] std::vector<CodedWeight> coded_weights(Engine& engine, const StepLayers& layers,
                                                     const std::vector<GroupedTensor>& parameters);

}  // namespace capo::run
