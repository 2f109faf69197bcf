#include "core/text/number.h"

#include "core/base/index.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace capo {

namespace {

// Reads `3`, `-12` and `-1.5` without a detour: nearly every entry of every order is one of these.
std::optional<Number> read_small(std::string_view token) {
  const bool negative = token.front() == '-';
  std::size_t at = negative ? 1 : 0;
  const std::size_t first = at;
  int whole = 0;
  while (at < token.size() && is_digit(token[at]) && at - first < 8) {
    whole = whole * 10 + (token[at] - '0');
    ++at;
  }
  const bool leading_zero = at - first > 1 && token[first] == '0';
  if (at == first || leading_zero) return std::nullopt;
  if (at == token.size()) {
    const double value = whole;
    return Number{.value = negative && whole != 0 ? -value : value, .type = NumberType::Integer};
  }
  const bool half = token.size() - at == 2 && token[at] == '.' && token[at + 1] == '5';
  if (!half) return std::nullopt;
  const double value = whole + 0.5;
  return Number{.value = negative ? -value : value, .type = NumberType::Float};
}

std::optional<Number> read_named(std::string_view word, double sign) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "nan") {
    return Number{.value = std::numeric_limits<double>::quiet_NaN(), .type = NumberType::Float};
  }
  if (lower == "inf" || lower == "infinity") {
    return Number{.value = sign * std::numeric_limits<double>::infinity(),
                  .type = NumberType::Float};
  }
  return std::nullopt;
}

// Accepts digits with optional fraction and exponent, at least one digit before or after the point.
bool is_decimal(std::string_view body, bool& floating) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t first = at;
    while (at < body.size() && is_digit(body[at])) ++at;
    return at - first;
  };
  const std::size_t before = digits();
  std::size_t after = 0;
  floating = false;
  if (at < body.size() && body[at] == '.') {
    floating = true;
    ++at;
    after = digits();
  }
  if (before + after == 0) return false;
  if (at < body.size() && (body[at] == 'e' || body[at] == 'E')) {
    floating = true;
    ++at;
    if (at < body.size() && (body[at] == '+' || body[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  // Python takes `007.5` for a float and refuses `007` as an int.
  const bool leading_zero = !floating && before > 1 && body[0] == '0' &&
                            body.find_first_not_of('0') != std::string_view::npos;
  return at == body.size() && !leading_zero;
}

double to_double(std::string_view body) {
  double value = 0;
  const auto result = std::from_chars(body.data(), body.data() + body.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  // from_chars leaves the value alone; Python rounds to infinity or zero.
  const std::size_t exponent = body.find_first_of("eE");
  const bool tiny = exponent != std::string_view::npos && body[exponent + 1] == '-';
  const bool zero_mantissa =
      body.substr(0, exponent).find_first_of("123456789") == std::string_view::npos;
  return tiny || zero_mantissa ? 0 : std::numeric_limits<double>::infinity();
}

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<Unit, 8> kUnits{{{"B", 1},
                                      {"kB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000},
                                      {"KiB", std::uint64_t{1} << 10},
                                      {"MiB", std::uint64_t{1} << 20},
                                      {"GiB", std::uint64_t{1} << 30},
                                      {"TiB", std::uint64_t{1} << 40}}};

// Cuts the digits off the beginning of a text.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = as_index(end - text.begin());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// The bytes of a fraction of a unit, "75" of 0.75, rounded down. They are exact for any number of
// digits.
std::uint64_t bytes_of_fraction(std::string_view digits, const Unit& unit) {
  std::uint64_t bytes = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    bytes = (static_cast<std::uint64_t>(*digit - '0') * unit.bytes + bytes) / 10;
  }
  return bytes;
}

}  // namespace

std::optional<Number> read_number(std::string_view token) {
  if (token.empty()) return std::nullopt;
  if (const auto small = read_small(token)) return small;

  double sign = 1;
  if (token.front() == '+' || token.front() == '-') {
    sign = token.front() == '-' ? -1 : 1;
    token.remove_prefix(1);
  }
  if (token.empty()) return std::nullopt;
  if (is_letter(token.front())) return read_named(token, sign);

  bool floating = false;
  if (!is_decimal(token, floating)) return std::nullopt;
  double value = to_double(token);
  if (!floating) {
    // An int has no infinity and no negative zero.
    value = std::min(value, std::numeric_limits<double>::max());
    return Number{.value = value == 0 ? 0 : sign * value, .type = NumberType::Integer};
  }
  return Number{.value = sign * value, .type = NumberType::Float};
}

std::string to_text(const Number& number) {
  if (std::isnan(number.value)) return "nan";
  if (std::isinf(number.value)) return number.value < 0 ? "-inf" : "inf";
  if (number.type == NumberType::Integer) {
    constexpr double kExact = 0x1p53;
    const bool simple = number.value != 0 && std::abs(number.value) <= kExact;  // -0 has a sign
    if (!simple) return fmt::format("{:.0f}", number.value);
    return fmt::format_int(static_cast<std::int64_t>(number.value)).str();
  }
  std::string text = fmt::format("{}", number.value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Result<std::int64_t, std::string> read_size(std::string_view text) {
  std::string_view rest = text;
  const std::string_view whole = take_digits(rest);
  const bool point = rest.starts_with('.');
  if (point) rest.remove_prefix(1);
  const std::string_view fraction = point ? take_digits(rest) : std::string_view();
  const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                  [&](const Unit& known) { return known.name == rest; });
  if (whole.empty() || (point && fraction.empty()) || unit == kUnits.end()) {
    return fmt::format(
        "{} is no size: write a number and B, KiB, MiB, GiB, TiB, kB, MB or GB, as in 80GiB",
        shown(text));
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t units = 0;
  const auto read = std::from_chars(whole.data(), whole.data() + whole.size(), units);
  const std::uint64_t part = bytes_of_fraction(fraction, *unit);
  if (read.ec != std::errc{} || units > (kMost - part) / unit->bytes) {
    return fmt::format("{} is above {} bytes", shown(text), kMost);
  }
  const std::uint64_t bytes = units * unit->bytes + part;
  if (bytes == 0) return fmt::format("{} is less than a byte", shown(text));
  return static_cast<std::int64_t>(bytes);
}

std::string byte_words(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::int64_t scale = 1;
  while (unit + 1 < kUnits.size() && bytes / 1024 >= scale) {
    scale *= 1024;
    ++unit;
  }
  if (bytes % scale == 0) return fmt::format("{} {}", bytes / scale, kUnits[unit]);
  return fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(scale),
                     kUnits[unit]);
}

std::vector<NamedNumber> named_numbers(std::string_view list) {
  std::vector<NamedNumber> numbers;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    NamedNumber& number = numbers.emplace_back();
    number.item = list.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = number.item.find('=');
    number.name = number.item.substr(0, equals);
    if (equals == std::string_view::npos) continue;
    if (const auto read = read_number(number.item.substr(equals + 1))) number.value = read->value;
  }
  return numbers;
}

}  // namespace capo
