// Tries the edits that findings suggest before anybody reads them, and looks for the slip behind a
// cascade of findings.
//
//   ... -2 1 -2 -2.5 ...     one `-2` of a hundred entries was meant to be `-2.5`: three rules are
//                            broken, all of them elsewhere
//
// A cure that does not cure is worse than none. An edit of an error or of a warning stays in a
// report if the order, judged again with it, has lost its finding and has no error that it had not
// before; otherwise the help goes. Edits of errors are tried first.
//
// A slip is one entry of a TE list written for another. The counts of a list tell which: one kind
// of one chunk occurs once too often, another once too rarely. Every entry of the first is tried as
// the other, the nearest before the first finding first, and the one that makes the order
// acceptable is called by its name. Of several that would, it is the only one with which the other
// stands between entries as it does elsewhere in the list; if two do, capo does not know which was
// meant.
//
// Both judge the order again and again, so both stop at a budget of entries judged; beyond it helps
// lose their edits and no slip is looked for. How an edited text is judged is the caller's affair,
// since only the caller knows what was declared beside it. Not tried: two slips at once, entries
// left out or put in, and texts that are no lists. Tested by cures_test.cpp.

#pragma once

#include "core/order/input.h"
#include "core/order/schedule.h"
#include "core/rules/check_result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capo {

/// Judges a text under the declarations of the first one; nullopt if it cannot be read.
using JudgeText = std::function<std::optional<CheckResult>(const std::string& text)>;

struct CureOptions {
  /// Entries that may be judged in all; beyond it nothing more is tried.
  std::uint64_t budget = 4'000'000;
};

/// Takes each help away whose edits do not cure their finding, or that nobody had the time to try.
void keep_cures_that_work(CheckResult& result, const Input& input, const JudgeText& judge,
                          const CureOptions& options = {});

/// An entry that was written for another.
struct Slip {
  Diagnostic finding;  ///< has the rule of the finding that a report lists first
  std::string text;    ///< the list with the entry that was meant
  std::size_t position = 0;
  Action meant;  ///< its microbatch means nothing
};

/// nullopt if no single entry makes a rejected list acceptable, or several do and none is likelier.
[[nodiscard]] std::optional<Slip> find_slip(const CheckResult& result, const Input& input,
                                            const JudgeText& judge,
                                            const CureOptions& options = {});

/// Keeps the slip in place of the findings that follow from it; its note says that `--all` shows
/// them.
void replace_by_slip(CheckResult& result, Diagnostic slip);

}  // namespace capo
