// The finding that stands for a check where only one is shown.
//
// Tested by tests/core/draw/draw_test.cpp.

#pragma once

#include "core/diag/diagnostics.h"

#include <algorithm>

namespace capo {

/// Of sorted findings the first error, or else the first warning; null where there is neither.
[[nodiscard]] inline const Diagnostic* first_finding(const Diagnostics& findings) {
  const auto& kept = findings.kept();
  const auto error = std::find_if(kept.begin(), kept.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  if (error != kept.end()) return &*error;
  return kept.empty() ? nullptr : &kept.front();
}

}  // namespace capo
