#include "core/base/plural.h"

namespace capo {

std::string plural(std::int64_t number, std::string_view noun, std::string_view many) {
  if (number == 1) return std::string(noun);
  return many.empty() ? std::string(noun) + "s" : std::string(many);
}

std::string counted(std::int64_t number, std::string_view noun, std::string_view many) {
  return std::to_string(number) + " " + plural(number, noun, many);
}

}  // namespace capo
