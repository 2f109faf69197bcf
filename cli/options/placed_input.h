// An input with what is declared about it: read, placed, and ready to be judged or simulated. The
// first steps of every command that looks at orders.

#pragma once

#include "cli/options/environment_options.h"
#include "cli/options/input_options.h"
#include "core/model/model.h"
#include "core/order/input.h"

#include <variant>

namespace capo::cli {

struct PlacedInput {
  Input input;
  Model model;
};

/// The input, or the exit code after the reason was printed. Throws CLI::ValidationError where
/// flags contradict the input or the model file.
[[nodiscard]] std::variant<PlacedInput, int> load_placed(const InputOptions& input,
                                                         const EnvironmentOptions& environment);

}  // namespace capo::cli
