// The options that say what to read, and what is declared about that text. All commands that look
// at one order share them.

#pragma once

#include "cli/options/choice.h"
#include "cli/options/command_error.h"
#include "core/base/result.h"
#include "core/input/load.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace capo::cli {

/// Words for the forms of a text: te, order, csv and json.
[[nodiscard]] const Words<TextForm>& form_words();

enum class TableKind { Compute, Comms };

struct InputOptions {
  std::string file;
  std::optional<std::string> order;  ///< the text of --order, which may be empty
  std::optional<TextForm> form;
  std::string layers;
  std::string delayed;
  std::string stage_to_rank;
  std::optional<TableKind> csv;
  std::int32_t microbatches = 0;  ///< 0: not declared
  std::int32_t stages = 0;
  std::optional<std::int32_t> rank;  ///< of the lists of several ranks, the one to read
  Limits limits;

  /// Declares the options of a command that reads one order.
  void add_to(CLI::App& app);
  /// Declares those of a command that reads several, `file` and `more`, one after the other.
  void add_to(CLI::App& app, std::vector<std::string>& more);

  /// Declares --rank.
  void add_rank_to(CLI::App& app);

  /// The declarations as the readers take them; throws CLI::ValidationError on a malformed one.
  [[nodiscard]] LoadOptions load_options() const;

 private:
  void add_rest_to(CLI::App& app);
};

/// Declares --max-entries, --max-ranks and --max-count, which limit a schedule that is read or
/// made.
void add_size_limits(CLI::App& app, Limits& limits);

/// Throws CLI::ValidationError if the options name no input, or two.
[[nodiscard]] Result<Input, CommandError> load_input(const InputOptions& options);

/// Reads "0,2,1" as numbers of at least `least`; throws CLI::ValidationError.
[[nodiscard]] std::vector<std::int32_t> number_list(const std::string& text,
                                                    const std::string& flag, std::int32_t least);

}  // namespace capo::cli
