// The flags of a timeline as text: how wide it is, and whether kinds differ in colour.
//
// A grid that goes to standard output is as wide as the terminal and coloured on one; one that is
// written to a file is neither. Tested by tests/cli/simulate_test.cpp and draw_test.cpp.

#pragma once

#include "cli/options/terminal.h"
#include "core/timeline/timeline.h"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace capo::cli {

struct GridFlags {
  std::optional<std::size_t> width;  ///< nullopt: that of the terminal
  ColourChoice colour = ColourChoice::Auto;

  void add_to(CLI::App& command);
  /// The options of a grid that is written to `output`.
  [[nodiscard]] GridOptions options_for(const std::string& output) const;
};

}  // namespace capo::cli
