#include "cli/options/numbers.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace capo::cli {

namespace {

// Writes the text anew in digits that CLI11 reads as they are meant. Returns why it is no number;
// empty if it is one.
template <typename Whole>
std::string to_plain_digits(std::string& text) {
  const auto number = whole_number(text, std::numeric_limits<Whole>::min());
  if (!number) return number.error();
  text = std::to_string(*number);
  return "";
}

std::string refuse_if_not_finite(const std::string& text) {
  return finite_number(text) ? "" : fmt::format("{} is no number", shown(text));
}

// The transformation comes before all other checks of the option's value.
void read_decimally(CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("UINT")) {
    option.transform(CLI::Validator(to_plain_digits<std::uint64_t>, ""));
  } else if (type.starts_with("INT")) {
    option.transform(CLI::Validator(to_plain_digits<std::int64_t>, ""));
  } else if (type.starts_with("FLOAT")) {
    option.transform(CLI::Validator(refuse_if_not_finite, ""));
  }
}

}  // namespace

void read_decimally(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) read_decimally(*option);
  for (CLI::App* command : app.get_subcommands(nullptr)) read_decimally(*command);
}

std::optional<double> finite_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_text = error == std::errc{} && end == text.data() + text.size();
  return whole_text && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

CLI::Validator above_zero() {
  return {[](const std::string& text) {
            const auto number = finite_number(text);
            return number && *number > 0 ? "" : fmt::format("{} is no number above 0", shown(text));
          },
          "ABOVE 0"};
}

CLI::Option* add_above_zero(CLI::App& app, const std::string& name, std::optional<double>& value,
                            const std::string& help) {
  const auto keep = [&value](const std::string& text) { value = finite_number(text); };
  return app.add_option_function<std::string>(name, keep, help)
      ->type_name("FLOAT")
      ->check(above_zero());
}

}  // namespace capo::cli
