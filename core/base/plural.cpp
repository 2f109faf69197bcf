#include "core/base/plural.h"

#include <algorithm>
#include <cstddef>

namespace capo {

std::string plural(std::int64_t number, std::string_view noun, std::string_view many) {
  if (number == 1) return std::string(noun);
  return many.empty() ? std::string(noun) + "s" : std::string(many);
}

std::string counted(std::int64_t number, std::string_view noun, std::string_view many) {
  return std::to_string(number) + " " + plural(number, noun, many);
}

std::string numbered(std::int64_t count) {
  return count == 1 ? "only 0" : "0 to " + std::to_string(count - 1);
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > most) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    at = end + 1;
  }
  return lines;
}

}  // namespace capo
