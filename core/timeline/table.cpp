#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace capo {

std::string figure(double value) {
  if (std::abs(value) < 1e-12) return "0";
  // Whole numbers in full, whatever their size; other numbers keep six digits that matter.
  const int decimals =
      std::clamp(5 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 17);
  std::string text = fmt::format("{:.{}f}", value, decimals);
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
