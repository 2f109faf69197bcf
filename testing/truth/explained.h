// What a rule rejects and no run of capo's can show, one by one, with the reason.
//
// A rejected order that comes out right is a disagreement unless every rule that it breaks is one
// of these. docs/run.md lists the same ("Unchecked"). Tested by tests/testing/truth/judge_test.cpp.

#pragma once

#include <string_view>

namespace capo::testing {

/// By the id of a rule; empty: a run has to show it.
[[nodiscard]] std::string_view why_not_shown(std::string_view rule);

}  // namespace capo::testing
