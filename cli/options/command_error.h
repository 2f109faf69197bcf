// Why a command stops before it has looked at an order: the machine refused to read something, or
// the text that it read is no order, no model and no topology.
//
// Mistakes in the use of the command line are no such error: they are thrown as CLI11 throws its
// own, CLI::ValidationError, and main() prints them. Tested by bad_input_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/input/load.h"

#include <variant>

namespace capo::cli {

using CommandError = std::variant<Error, RefusedInput>;

/// Prints the reason to standard error, a refused text with the line that is at fault. Returns the
/// exit code that the reason means.
[[nodiscard]] int refuse(const CommandError& error);

}  // namespace capo::cli
