// A report as SARIF 2.1.0, within what GitHub's code scanning takes.
//
// GitHub shows 5,000 results of a run and 100 locations of a result; what is beyond is left out
// here and the run says so in a notification, so that a silent cut is never mistaken for a clean
// file. Tested by tests/cli/check_test.cpp.

#pragma once

#include "core/report/report.h"

#include <string>
#include <string_view>

namespace capo {

[[nodiscard]] std::string to_sarif(const Report& report, std::string_view version);

}  // namespace capo
