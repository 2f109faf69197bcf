// What `capo check --explain-model` adds to a report: every fact that the verdict is relative to,
// where it came from, and what it means.
//
// Tested by explain_setting_test.cpp.

#pragma once

#include "core/report/report.h"

#include <string>

namespace capo {

/// Empty for an input that was refused.
[[nodiscard]] std::string explain_setting(const Report& report);

}  // namespace capo
