// The bytes of a plan's buffers that hold codes, of a layer whose products read codes: those of a
// transformer layer are those of its halves, and those of experts follow from their rows.
//
// Tested by tests/run/steps/recipe_runs_test.cpp.

#pragma once

#include "run/modules/layer.h"

#include <cstdint>

namespace capo::run {

/// Bytes of the codes of the incoming gradient that B leaves to W, of a layer that has a scaling.
[[nodiscard]] std::int64_t coded_gradient_bytes(const LayerShape& shape);

/// Bytes of `quantized_weight`, of a layer that has a scaling.
[[nodiscard]] std::int64_t quantized_weight_bytes(const LayerShape& shape);

}  // namespace capo::run
