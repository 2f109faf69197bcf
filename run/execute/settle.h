// What Python does beside the kernels of an action: autograd's accumulation, as PyTorch's
// accumulator does it, and, where each weight gradient has a place of its own, the sum that it is
// part of.
//
// Tested through tests/run/steps/contract_runs_test.cpp.

#pragma once

#include "run/engine/engine.h"
#include "run/setup/deposits.h"
#include "run/setup/parameters.h"

#include <cstdint>

namespace capo::run {

/// Behind the product of the action, on its stream.
void settle(Engine& engine, StreamId stream, const GradientMemory& memory, const Deposit& deposit,
            std::int32_t microbatch);

}  // namespace capo::run
