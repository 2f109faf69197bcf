#include "cli/options/terminal.h"

#include "cli/options/choice.h"

#include <CLI/CLI.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace capo::cli {

std::size_t terminal_width() {
  winsize size{};
  const bool told = ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return told && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

CLI::Option* add_colour(CLI::App& app, ColourChoice& choice) {
  return add_choice(app, "--color", choice,
                    {{"auto", ColourChoice::Auto},
                     {"always", ColourChoice::Always},
                     {"never", ColourChoice::Never}},
                    "auto, always or never; NO_COLOR is respected");
}

Colour colour_of(ColourChoice choice) {
  if (choice == ColourChoice::Always) return Colour::On;
  if (choice == ColourChoice::Never) return Colour::Off;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  const bool forbidden = (no_color != nullptr && *no_color != '\0') || dumb;
  return ::isatty(STDOUT_FILENO) == 1 && !forbidden ? Colour::On : Colour::Off;
}

}  // namespace capo::cli
