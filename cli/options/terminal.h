// The terminal that standard output may be: its width, and whether to colour what goes there.
//
// Output that goes elsewhere, into a file or a pipe, is the same on every machine: a width of 100
// characters and no colour. Tested by tests/cli/help_test.cpp.

#pragma once

#include "core/base/colour.h"

#include <cstddef>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capo::cli {

/// Characters in a line of output that goes to no terminal, or to one that does not tell its width.
inline constexpr std::size_t kUsualWidth = 100;

/// Characters in a line of standard output.
[[nodiscard]] std::size_t terminal_width();

enum class ColourChoice { Auto, Always, Never };

/// The option --color.
CLI::Option* add_colour(CLI::App& app, ColourChoice& choice);

/// The colour of what goes to standard output. Auto colours for a terminal, unless NO_COLOR is set
/// and not empty or TERM is `dumb`.
[[nodiscard]] Colour colour_of(ColourChoice choice);

}  // namespace capo::cli
