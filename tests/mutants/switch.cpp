#include "tests/mutants/switch.h"

#include <cstdlib>

namespace capo::mutants {

namespace {

std::string_view chosen() {
  const char* name = std::getenv("CAPO_MUTANT");
  return name == nullptr ? "" : name;
}

}  // namespace

bool on(std::string_view name) {
  static const std::string_view kChosen = chosen();
  return name == kChosen;
}

}  // namespace capo::mutants
