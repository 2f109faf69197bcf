// Tests of a rule that differ in data alone, as rows: an order, and where the findings about it
// stand.
//
//   expect_findings({
//       {"ReportsEachOfThem", check_te("[nan, 1, -inf, -1]"), "S01@0 S01@2"},
//       {"AcceptsTheListWithoutIt", check_te("[1, -1]")},
//       {"NamesTheEntry", check_te("[1, nan, -1]"), "S01@1", labels("4+3")},
//   });
//
// The rest of a row is about its first finding. A row that fails is named in the message. Tested
// by finding_rows_test.cpp.

#pragma once

#include "tests/support/check_text.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing_support {

struct Detail {
  enum class Kind : std::uint8_t { Reason, Message, Witness, Labels, Severity, Stuck };
  Kind kind;
  std::string text;
};

/// Why the row is as it is, for whoever reads it or its failure.
[[nodiscard]] Detail because(std::string why);
/// The whole message.
[[nodiscard]] Detail says(std::string message);
/// Severity, kind of witness, and its entries: "error path: 0:2 -1 B(c1,m0), 0:3 -2 B(c2,m0)" are
/// those at index 2 and 3 of rank 0.
[[nodiscard]] Detail shows(std::string witness);
/// Spans of labels without a text: "4+3" are three bytes from 4 on.
[[nodiscard]] Detail labels(std::string spans);
/// Every finding is a warning.
[[nodiscard]] Detail warns();
/// The first finding is an error.
[[nodiscard]] Detail fails();
/// The step does not finish.
[[nodiscard]] Detail stuck();

struct FindingRow {
  template <typename... Details>
  FindingRow(std::string the_name, Checked the_checked, std::string the_findings = "",
             Details... the_details)
      : name(std::move(the_name)),
        checked(std::move(the_checked)),
        findings(std::move(the_findings)),
        details{std::move(the_details)...} {}

  std::string name;  ///< empty if the row belongs to the name above it
  Checked checked;
  std::string findings;  ///< "S15@1 S15@2", as Checked::findings()
  std::vector<Detail> details;
};

/// An order is accepted if and only if no finding about it is an error.
void expect_findings(const std::vector<FindingRow>& rows);

}  // namespace capo::testing_support
