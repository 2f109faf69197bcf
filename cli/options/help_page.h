// The page that `--help` and `capo help COMMAND` print: an option a paragraph, no line longer than
// the terminal, examples as they are typed.
//
//   --comm {per-rank,per-pair,per-edge}
//                               Which transfers of a rank queue up: per-rank, per-pair or per-edge;
//                               default: per-rank, the strictest
//
// Other names of an option, Megatron's among them, stand behind its description. Tested by
// tests/cli/help_test.cpp.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace capo::cli {

/// "--format {text,json}=text", "FILE ...": an option with the word for its value.
[[nodiscard]] std::string heading_of(const CLI::Option& option);

/// The purpose of an option, its other names, and the options that it needs or cannot stand with.
[[nodiscard]] std::string description_of(const CLI::Option& option);

/// Makes a program print such pages, and the commands that are added to it afterwards.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_pages();

}  // namespace capo::cli
