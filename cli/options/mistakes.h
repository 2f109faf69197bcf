// Mistakes in a command line are told in words that name the cure:
//
//   capo check --ordr "[1]"     `capo check` has no flag --ordr; did you mean --order?
//   capo check --cost f=1       `capo check` has no flag --cost; compare, generate and 2 more have
//   capo chek                   there is no command `chek`; did you mean `check`?
//
// CLI11 finds the mistakes; what it says of them is kept only where it says it well. A flag that
// nobody knows comes before all else, since what else is wrong often follows from it: the flag that
// is missed is the one that was typed wrong. Tested by tests/corpus/cli/mistakes/.

#pragma once

#include "core/base/error.h"

#include <functional>
#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace capo::cli {

/// The mistake that was thrown while `app`, the whole program, was parsing. `declare_others`
/// declares the options of all commands, where a flag may be that of another.
[[nodiscard]] Error mistake_of(const CLI::App& app, const CLI::ParseError& thrown,
                               std::span<char* const> arguments,
                               const std::function<void()>& declare_others);

/// The command below `app` with this name; null if there is none.
[[nodiscard]] const CLI::App* command_named(const CLI::App& app, const std::string& name);

/// Throws CLI::ValidationError: "there is no command `chek`; did you mean `check`?"
[[noreturn]] void refuse_command(const CLI::App& app, const std::string& word);

/// "--model and FILE both read standard input, which can be read once"; empty unless two inputs of
/// the parsed command do.
[[nodiscard]] std::string two_from_standard_input(const CLI::App& command);

}  // namespace capo::cli
