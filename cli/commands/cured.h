// `capo check` helps who made one mistake: with cures that were tried, the slip called by its
// name, and --fix. `capo run` prints no cure that was not tried either. The trials themselves are
// core/cures.
//
// An edited text is judged as the first was: under the same flags and the model that was read
// before. Nothing is tried of an order whose replay is from another file, since an edit belongs to
// one of two texts, and so no edit of it is printed. Tested by tests/cli/cured_test.cpp; every edit
// that is printed over the corpora is made and judged by tests/cli/printed_edits_test.cpp.

#pragma once

#include "cli/commands/check_options.h"
#include "cli/options/judged_input.h"
#include "core/cures/cures.h"

#include <functional>
#include <optional>
#include <string>

namespace capo::cli {

/// Judges an order with its model.
using JudgeInput = std::function<CheckResult(const JudgedInput&)>;

/// Judges texts in the notation of `judged` under the flags and the model that it was read under.
/// The judge refers to `request`, `judged` and `check`.
[[nodiscard]] JudgeText judge_under(const InputRequest& request, const JudgedInput& judged,
                                    const JudgeInput& check);

/// Takes each help away from the findings of `result` whose edits do not cure, or were not tried.
void try_cures(const InputRequest& request, const JudgedInput& judged, const JudgeInput& check,
               CheckResult& result);

/// Leaves cures that work in the findings of a check. If one entry explains them all it is the
/// first, and in text the only one, unless --all asks for the findings as they are. Returns the
/// order that would be accepted, if one edit makes it so.
[[nodiscard]] std::optional<std::string> cure(const CheckRequest& request,
                                              const JudgedInput& judged, CheckResult& result);

}  // namespace capo::cli
