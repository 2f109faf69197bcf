#include "core/timeline/table.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace capo {

namespace {

// The digits of a number of usual size, which a large picture has ten thousands of. Returns false
// if it is of another size or so near the middle between two figures that its own bits decide.
bool append_usual_figure(double value, std::string& text) {
  constexpr std::array<double, 9> kPowers{1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1};
  constexpr std::array<double, 9> kSizes{1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
  const double size = std::abs(value);
  if (!(size >= 1e-3 && size < 1e6)) return false;
  std::size_t row = 0;
  while (size >= kSizes[row]) ++row;
  const double parts = value * kPowers[row];
  const double rest = std::abs(parts) - std::floor(std::abs(parts));
  if (std::abs(rest - 0.5) < 1e-6) return false;
  append_decimal(std::llround(parts), 8 - static_cast<int>(row), text);
  return true;
}

}  // namespace

void append_decimal(std::int64_t parts, int decimals, std::string& text) {
  for (; decimals > 0 && parts % 10 == 0; --decimals) parts /= 10;
  if (parts < 0) text += '-';
  std::array<char, 24> digits;
  const char* end = std::to_chars(digits.begin(), digits.end(), std::abs(parts)).ptr;
  const auto places = as_index(decimals);
  const auto count = static_cast<std::size_t>(end - digits.data());
  const std::size_t whole = count > places ? count - places : 0;
  text.append(digits.data(), whole);
  if (whole == 0) text += '0';
  if (places == 0) return;
  text += '.';
  if (count < places) text.append(places - count, '0');
  text.append(digits.data() + whole, count - whole);
}

std::string figure(double value) {
  if (std::abs(value) < 1e-12) return "0";
  std::string text;
  if (append_usual_figure(value, text)) return text;
  // Whole numbers in full, whatever their size; other numbers keep six digits that matter.
  const int decimals =
      std::clamp(5 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 17);
  text = fmt::format("{:.{}f}", value, decimals);
  if (decimals == 0) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string percent(double rate) {
  return fmt::format("{:.2f} %", rate * 100 + 0.0);
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t numbers) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += c == 0        ? fmt::format("{:<{}}", row[c], widths[c])
              : c < numbers ? fmt::format("  {:>{}}", row[c], widths[c])
                            : "  " + row[c];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace capo
