// What a user is told of an order that has no timeline: the verifier's findings, and that in one
// line.

#pragma once

#include "core/order/input.h"
#include "sim/simulation.h"

namespace capo::cli {

/// Prints to standard error; the exit code.
[[nodiscard]] int refuse_simulation(const Input& input, const CannotSimulate& why);

}  // namespace capo::cli
