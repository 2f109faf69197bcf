// `capo check` helps who made one mistake: with cures that were tried, the slip called by its
// name, and --fix. The trials themselves are core/cures.
//
// An edited text is judged as the first was: under the same flags and the model that was read
// before. An order with a replay of its own from another file is left alone, since an edit belongs
// to one of two texts. Tested by tests/cli/cured_test.cpp.

#pragma once

#include "cli/commands/check_options.h"
#include "core/cures/cures.h"

#include <optional>
#include <string>

namespace capo::cli {

/// The findings of `result` with cures that work; if one entry explains them all, that alone,
/// unless
/// --all asks for the findings as they are. Returns the order that would be accepted, if one edit
/// makes it so.
[[nodiscard]] std::optional<std::string> cure(const CheckRequest& request,
                                              const JudgedInput& judged, CheckResult& result);

}  // namespace capo::cli
