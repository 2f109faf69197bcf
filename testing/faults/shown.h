// What a fault broke, shown to paste: the text has the rule that the subject has.
//
// As rapidcheck shows it, in .order lines or JSON for `capo check -`. What is judged as a table is
// shown as one: some faults are none of the same order in .order text. Tested by
// tests/cli/paste_test.cpp, which pastes it.

#pragma once

#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/sound_declared.h"

#include <sstream>
#include <string>

namespace capo::testing {

template <typename Subject>
[[nodiscard]] std::string shown(const Subject& subject) {
  std::ostringstream text;
  showValue(subject, text);
  return text.str();
}

[[nodiscard]] std::string shown(const Declared& declared);

}  // namespace capo::testing
