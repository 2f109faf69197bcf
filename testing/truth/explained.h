// The rules whose findings no run of capo's can show, with the reason for each.
//
// A rejected order that comes out right is a disagreement unless every rule that it breaks is one
// of these. docs/run.md lists them too ("Unchecked"). Tested by tests/testing/truth/judge_test.cpp.

#pragma once

#include <string_view>

namespace capo::testing {

/// The reason for the rule of this id; empty if a run has to show its findings.
[[nodiscard]] std::string_view why_not_shown(std::string_view rule);

}  // namespace capo::testing
