// A disagreement of the truth campaign, made smaller: the fewest entries, and the plainest modules
// and settings, that still disagree in the same way: for the same reason, and by no other rules.
//
// The order is made smaller by capo's own minimise(), each candidate judged and run anew. Then
// replays, granularity, sizes and flags become what they are by default, one at a time. What
// declares modules by rank or chunk keeps their numbers. An order that was made to be sound and was
// rejected becomes smaller only as whoever made it would make it smaller: where modules are
// declared one by one, or memory is shared as TransformerEngine does, microbatches go; else ranks,
// chunks and weight gradients too. Its modules stay, since one flag may be what makes another one
// right.
//
// If the case was not run, and not because an invariant of capo's own broke, a smaller order would
// be wrong for a reason of its own, and the case stays as it is. An invariant that breaks on the
// way ends the search with the smallest case by then. Tested by
// tests/testing/truth/minimal_case_test.cpp.

#pragma once

#include "testing/truth/campaign.h"
#include "testing/truth/truth_case.h"
#include "testing/truth/truth_line.h"

namespace capo::testing {

struct MinimalCase {
  TruthCase of;
  TruthLine line;
};

/// `line`: what `judge` makes of the case, a disagreement.
[[nodiscard]] MinimalCase minimal_case(const TruthCase& of, const TruthLine& line,
                                       const JudgeCase& judge);

}  // namespace capo::testing
