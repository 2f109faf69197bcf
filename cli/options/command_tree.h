// The commands and their options, as pages and completions need them: read off CLI11's tree, so
// that nothing is listed twice. Tested by tests/cli/completion_test.cpp.

#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capo::cli {

/// A command with its words, {"generate", "megatron"}; the program itself has none.
struct CommandNode {
  std::vector<std::string> words;
  const CLI::App* app = nullptr;

  /// The words with `between` between them: "generate megatron".
  [[nodiscard]] std::string name(const std::string& between = " ") const;
};

/// Every command, each before those below it; the first is the program itself.
[[nodiscard]] std::vector<CommandNode> command_tree(const CLI::App& app);

/// An option as a shell knows it.
struct Flag {
  std::vector<std::string> names;  ///< "--output", "-o"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values;  ///< all that it takes; empty: anything
};

/// The options of a command that are no positionals.
[[nodiscard]] std::vector<Flag> flags_of(const CLI::App& command);

/// The words that may stand where no flag does: commands below this one, names of schedules or of
/// rules. Empty if it takes files, or nothing.
[[nodiscard]] std::vector<std::string> words_of(const CommandNode& command);

}  // namespace capo::cli
