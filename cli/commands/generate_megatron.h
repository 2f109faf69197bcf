// `capo generate megatron`: a command of its own below `generate`, since a framework's
// configuration has other words than a published schedule.

#pragma once

#include "cli/commands/commands.h"

namespace capo::cli {

/// Declares the subcommand; `run` is what it does. Returned to be asked whether it was given.
[[nodiscard]] CLI::App* add_generate_megatron(CLI::App& generate, Run& run);

}  // namespace capo::cli
