// A campaign: cases by number, judged by as many threads as there are jobs, their lines written in
// the order of the numbers.
//
// The lines are the same whatever the number of jobs. A campaign that was killed leaves a prefix,
// and goes on behind it: half a line is cut off, and so is a last line that disagrees, which is
// judged again. The first line of the file says of which campaign it is; the lines of another one
// are refused. The first disagreement by number is the last line; a case that could not be judged
// has none, and ends the campaign with its error. An invariant of capo's own that breaks while a
// case is drawn is a disagreement without an order; while it is judged, judge.h has its line.
// Tested by tests/testing/truth/campaign_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "testing/truth/tally.h"
#include "testing/truth/truth_case.h"
#include "testing/truth/truth_line.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capo::testing {

/// Both are called from all threads at once.
using MakeCase = std::function<TruthCase(std::uint64_t number)>;
using JudgeCase = std::function<Result<TruthLine, Error>(const TruthCase&)>;

struct Campaign {
  std::uint64_t orders = 1000;
  unsigned jobs = 1;
  std::string lines;   ///< the file; empty: none is written
  std::string header;  ///< its first line, one JSON object
  MakeCase make;
  JudgeCase judge;
  // Both may be null.
  std::function<void(std::uint64_t lines)>
      resumed;  ///< called before the rest, if there are such lines
  std::function<void(std::uint64_t done)> progress;  ///< called after each line, in their order
};

struct CampaignResult {
  Tally tally;                            ///< counts all lines, those of earlier runs included
  std::uint64_t resumed = 0;              ///< lines that were there already
  std::optional<TruthLine> disagreement;  ///< the first, which ended it
};

[[nodiscard]] Result<CampaignResult, Error> run_campaign(const Campaign& campaign);

}  // namespace capo::testing
