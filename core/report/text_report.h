// A report for a person at a terminal, in rustc's manner.
//
//   error[S15]: `-1` at index 3 is a backward of chunk 1 without a forward: ...
//    --> <order>:1:12
//     |
//   1 | [1, 2, -1, -1]
//     |            ^^ no forward is left for it
//     = help: chunk 2 lacks a backward; is `-2` meant?
//
// A line too long for a terminal is shown as a window around the place. Colour only if asked for.
// Tested by tests/cli/check_test.cpp and by the golden texts of every rule.

#pragma once

#include "core/report/report.h"

#include <string>

namespace capo {

enum class Colour { Off, On };

[[nodiscard]] std::string to_text(const Report& report, Colour colour = Colour::Off);

}  // namespace capo
