// Numbers on the command line: decimal digits, finite, and never another number than was typed.
// CLI11 alone reads `010` as eight and `0x10` as sixteen, takes `nan`, makes of more digits than
// fit the largest number there is, and reads `2.5` as the locale would: not at all where a comma is
// meant. Options with a fraction are add_above_zero's for that reason.
//
// Tested by numbers_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace capo::cli {

/// Makes every option of a command, and of those below it, that takes a number read it so. Called
/// when all options are declared.
void read_decimally(CLI::App& app);

/// "12" to 12; the error says what is wrong with the text.
template <typename Whole>
[[nodiscard]] Result<Whole, std::string> whole_number(std::string_view text, Whole least) {
  Whole number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return fmt::format("{} is too large", shown(text));
  if (error == std::errc{} && end == text.data() + text.size() && number >= least) return number;
  return least < 0 ? fmt::format("{} is no whole number", shown(text))
                   : fmt::format("{} is no whole number of at least {}", shown(text), least);
}

/// Reads "4.5" or "1e3"; nullopt if the text is no number, or not a finite one.
[[nodiscard]] std::optional<double> finite_number(std::string_view text);

/// Accepts any number above 0.
[[nodiscard]] CLI::Validator above_zero();

/// An option that takes any number above 0. `value` outlives the parsing.
CLI::Option* add_above_zero(CLI::App& app, const std::string& name, std::optional<double>& value,
                            const std::string& help);

}  // namespace capo::cli
