#include "core/timeline/markup.h"

#include "core/timeline/marks.h"
#include "core/timeline/table.h"

namespace capo {

namespace {

// Beyond it a double holds no hundredths, and an int64 no number of them.
constexpr double kMost = 1e15;

}  // namespace

void Markup::put(Length length) {
  const double hundredths = length.value * 100;
  if (!(std::abs(hundredths) < kMost)) return put(ExactNumber{length.value});
  append_decimal(std::llround(hundredths), 2, text_);
}

// Fifteen digits that are read back as the number are its fewest, since no two such decimals are
// the same double. Whole numbers are written out, where the fewest characters could be 1e+05.
void Markup::put(ExactNumber number) {
  constexpr double kParts = 1e6;
  if (std::abs(number.value) < kMost / kParts) {
    const std::int64_t parts = std::llround(number.value * kParts);
    if (static_cast<double>(parts) / kParts == number.value) {
      return append_decimal(parts, 6, text_);
    }
  }
  if (std::abs(number.value) < kMost && number.value == std::trunc(number.value)) {
    return append_decimal(std::llround(number.value), 0, text_);
  }
  char digits[32];
  text_.append(digits, std::to_chars(digits, digits + sizeof digits, number.value).ptr);
}

void Markup::put(Escaped escaped) {
  if (is_plain(escaped.text)) return put(escaped.text);
  put(std::string_view(capo::escaped(escaped.text)));
}

}  // namespace capo
