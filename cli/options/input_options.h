// The options that say what to read and what is declared about it; `check` and `convert` share
// them.

#pragma once

#include "cli/options/command_error.h"
#include "core/base/result.h"
#include "core/input/load.h"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace capo::cli {

struct InputOptions {
  std::string file;
  std::optional<std::string> order;  ///< the text of --order, which may be empty
  std::string form;
  std::string layers;
  std::string delayed;
  std::string stage_to_rank;
  std::string csv;
  std::int32_t microbatches = 0;  ///< 0: not declared
  std::int32_t stages = 0;
  Limits limits;

  void add_to(CLI::App& app);

  /// The declarations as the readers take them; throws CLI::ValidationError on a malformed one.
  [[nodiscard]] LoadOptions load_options() const;
};

/// --max-entries, --max-ranks and --max-count: how large a schedule may be, read or made.
void add_size_limits(CLI::App& app, Limits& limits);

/// Throws CLI::ValidationError if the options name no input, or two.
[[nodiscard]] Result<Input, CommandError> load_input(const InputOptions& options);

/// "0,2,1" to numbers of at least `least`; throws CLI::ValidationError.
[[nodiscard]] std::vector<std::int32_t> number_list(const std::string& text,
                                                    const std::string& flag, std::int32_t least);

}  // namespace capo::cli
