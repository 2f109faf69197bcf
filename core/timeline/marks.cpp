#include "core/timeline/marks.h"

#include "core/base/index.h"
#include "core/text/printable.h"

#include <algorithm>

namespace capo {

std::string_view ink_of(Kind kind) {
  if (kind == Kind::Forward) return kInks[0].name;
  if (kind == Kind::BackwardWeight) return kInks[2].name;
  if (is_compute(kind)) return kInks[1].name;
  const bool moves = is_transfer(kind) || is_send_wait(kind);
  return moves ? kInks[3].name : kInks[4].name;
}

std::string_view letter_of(Kind kind) {
  constexpr std::array<std::string_view, 19> kLetters{
      "F", "B", "I", "W", "s", "r", "s", "r", "d", "c", "d", "c", "t", "t", "u", "x", "g", "t", ""};
  static_assert(kLetters.size() == static_cast<std::size_t>(Kind::Idle) + 1);
  return kLetters[as_index(kind)];
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '&' && c != '<' && c != '>' && c != '"';
  });
}

std::string escaped(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace capo
