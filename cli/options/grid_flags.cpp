#include "cli/options/grid_flags.h"

namespace capo::cli {

void GridFlags::add_to(CLI::App& command) {
  command
      .add_option("--width", width,
                  "Characters in a line of the grid; default: those of the terminal, else 100")
      ->check(CLI::Range(std::size_t{20}, std::size_t{100000}));
  add_colour(command, colour);
}

GridOptions GridFlags::options_for(const std::string& output) const {
  const bool shown = output == "-";
  const bool coloured = shown || colour == ColourChoice::Always;
  return {.width = width.value_or(shown ? terminal_width() : kUsualWidth),
          .colour = coloured ? colour_of(colour) : Colour::Off};
}

}  // namespace capo::cli
