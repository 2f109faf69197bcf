// The commands, one file each. add_NAME() declares the options of its command and returns a
// function that runs it; the exit code is what the process returns.

#pragma once

#include "core/text/limits.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace capo::cli {

using Run = std::function<int()>;

[[nodiscard]] Run add_check(CLI::App& command);
[[nodiscard]] Run add_convert(CLI::App& command);
[[nodiscard]] Run add_generate(CLI::App& command);
[[nodiscard]] Run add_run(CLI::App& command);
[[nodiscard]] Run add_measure(CLI::App& command);
[[nodiscard]] Run add_graph(CLI::App& command);
[[nodiscard]] Run add_draw(CLI::App& command);
[[nodiscard]] Run add_simulate(CLI::App& command);
[[nodiscard]] Run add_compare(CLI::App& command);
[[nodiscard]] Run add_sweep(CLI::App& command);
[[nodiscard]] Run add_optimise(CLI::App& command);
[[nodiscard]] Run add_minimise(CLI::App& command);
[[nodiscard]] Run add_explain(CLI::App& command);
[[nodiscard]] Run add_rules(CLI::App& command);
[[nodiscard]] Run add_profiles(CLI::App& command);
[[nodiscard]] Run add_devices(CLI::App& command);
[[nodiscard]] Run add_model(CLI::App& command);
[[nodiscard]] Run add_help(CLI::App& command);
[[nodiscard]] Run add_completion(CLI::App& command);
[[nodiscard]] Run add_man(CLI::App& command);

/// `capo measure --trace kineto.json`: writes to `output` what the actions of torch's traces took,
/// a rank each or one of all, as flags for `simulate`, `compare` and `draw`. Returns the exit code.
[[nodiscard]] int measure_traces(const std::vector<std::string>& files, const std::string& output,
                                 const Limits& limits);

/// Declares `capo generate megatron`, a command of its own below `generate`, since a framework's
/// configuration has other words than a published schedule. `run` becomes the function that runs
/// it; the result is asked whether it was given.
[[nodiscard]] CLI::App* add_generate_megatron(CLI::App& generate, Run& run);

}  // namespace capo::cli
