#include "core/text/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace capo {

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

}  // namespace capo
