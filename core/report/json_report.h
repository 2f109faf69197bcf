// A report for a program: schema 1, described in docs/schema/report.schema.json.
// Tested by tests/cli/check_test.cpp and tests/schema/.

#pragma once

#include "core/report/report.h"

#include <string>

namespace capo {

enum class JsonLayout {
  Indented,  ///< for people who look at it
  OneLine,   ///< for JSON lines
};

/// `extra_input` is the inside of a JSON object (`"note":"..."`), handed through under "input".
[[nodiscard]] std::string to_json(const Report& report, JsonLayout layout,
                                  const std::string& extra_input = {});

}  // namespace capo
