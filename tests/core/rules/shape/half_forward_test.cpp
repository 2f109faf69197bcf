#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(HalfForward, ProposesTheWeightGradientThatLacksItsSign) {
  const Checked checked = check_te("[1, -1, 1.5]");
  ASSERT_EQ(checked.findings(), Findings{"S05@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`1.5` at index 2 is a fractional forward");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 3}, ""}}));
  EXPECT_EQ(finding.help.text,
            "write `-1.5` for the weight gradient of chunk 1, `1` for its forward");
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{8, 3}, "-1.5"}}));
}

TEST(HalfForward, ItsEditCuresTheList) {
  const Checked checked = check_te("[1, -1, 1.5]");
  const Edit& edit = checked.result.diagnostics.kept().at(0).help.edits.at(0);
  std::string text = checked.input.source.text;
  EXPECT_TRUE(
      check_te(text.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted());
}

TEST(HalfForward, GuessesNothingFromAnotherFraction) {
  for (const std::string fraction : {"0.5", "0.25", "1.25", "2.75", "1e-300"}) {
    const Checked checked = check_te("[1, " + fraction + ", -1]");
    EXPECT_EQ(checked.findings(), Findings{"S05@1"}) << fraction;
    const Help& help = checked.result.diagnostics.kept().at(0).help;
    EXPECT_EQ(help, (Help{.text = "a forward is a whole number"})) << fraction;
  }
}

TEST(HalfForward, ReadsAJsonListAlike) {
  EXPECT_EQ(check_text(R"({"order": [1, 1.5, -1]})").findings(), Findings{"S05@1"});
}

TEST(HalfForward, AcceptsTheNegativeHalf) {
  EXPECT_TRUE(check_te("[1, -1, -1.5]").accepted());
}

TEST(HalfForward, LeavesOtherOddEntriesToTheirRules) {
  EXPECT_EQ(check_te("[1, 2.0, -1]").findings(), Findings{"S03@1"});
  EXPECT_EQ(check_te("[1, inf, -1]").findings(), Findings{"S01@1"});
  EXPECT_EQ(check_te("[1, 0.0, -1]").findings(), Findings{"S04@1"});
  EXPECT_EQ(check_te("[1, -1.25, -1]").findings(), Findings{"S02@1"});
}

}  // namespace
}  // namespace capo
