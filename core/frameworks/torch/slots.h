// The activation slots of torch 2.15's `analyze_pipeline_activation_liveness`: how many activations
// of a rank live at once, each from its forward to its whole backward or its weight gradient.
//
//   0F0,0F1,0B0,0F2,0B1,0B2        2 slots
//
// Both ends count, so that what ends and what begins in one composite have a slot each. torch gives
// slots out by greedy colouring, which takes as few as there are lives at once. Tested by
// passes_test.cpp against torch's own numbers.

#pragma once

#include "core/frameworks/torch/predict.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace capo::torch {

/// nullopt if torch raises: a stage of the row lacks the forward or the release of a microbatch,
/// has it twice, or has it in the wrong order.
[[nodiscard]] std::optional<std::int64_t> activation_slots(const std::vector<Slot>& row,
                                                           std::int64_t microbatches);

}  // namespace capo::torch
