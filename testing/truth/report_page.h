// The report of a truth campaign in Markdown, made from its lines and nothing else, so that it can
// be made again anywhere.
//
// Tested by tests/testing/truth/tally_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"

#include <cstdint>
#include <iosfwd>
#include <string>

namespace capo::testing {

struct ReportPage {
  std::string text;
  std::uint64_t disagreements = 0;
};

/// `lines`: a whole file as a campaign writes it. `about`: `key: value` lines on where it ran,
/// copied into the table at the top; may be empty.
[[nodiscard]] Result<ReportPage, Error> report_page(std::istream& lines, std::istream& about);

}  // namespace capo::testing
