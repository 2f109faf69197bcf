#include "core/text/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : (first & 0xf0) == 0xe0         ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Refuses overlong forms, surrogates, and numbers beyond Unicode.
  const bool bad = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                   (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return bad ? 0 : length;
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= longest) return out + "...";
    const auto byte = static_cast<unsigned char>(text.front());
    // C1 controls are two bytes in UTF-8 and act on some terminals as ESC does.
    const bool c1 = byte == 0xc2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xa0;
    const std::size_t length = byte < 0x20 || byte == 0x7f || c1 ? 0 : utf8_length(text);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace capo
