// A disagreement of the truth campaign, made smaller: the fewest entries, and the plainest modules
// and settings, that still disagree in the same way.
//
// The order is made smaller by capo's own minimise(), each candidate judged and run anew; of one
// that was to be accepted and was not, by steps that keep it sound. Then replays, granularity,
// sizes and flags become what they are by default, one at a time. What declares modules by rank or
// chunk keeps their numbers. Where nothing was run, a smaller order would be wrong for a reason of
// its own, and the case stays as it is. Tested by tests/testing/truth/minimal_case_test.cpp.

#pragma once

#include <capo/testing/truth/campaign.h>
#include <capo/testing/truth/truth_case.h>
#include <capo/testing/truth/truth_line.h>

namespace capo::testing {

struct MinimalCase {
  TruthCase of;
  TruthLine line;
};

/// `line`: what `judge` makes of the case, a disagreement.
[[nodiscard]] MinimalCase minimal_case(const TruthCase& of, const TruthLine& line,
                                       const JudgeCase& judge);

}  // namespace capo::testing
