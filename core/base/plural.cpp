#include "core/base/plural.h"

#include <cstddef>

namespace capo {

std::string plural(std::int64_t number, std::string_view noun, std::string_view many) {
  if (number == 1) return std::string(noun);
  return many.empty() ? std::string(noun) + "s" : std::string(many);
}

std::string counted(std::int64_t number, std::string_view noun, std::string_view many) {
  return std::to_string(number) + " " + plural(number, noun, many);
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace capo
