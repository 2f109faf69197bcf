#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(FloatChunk, ProposesTheInteger) {
  const Checked checked = check_te("[1.0, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S03@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`1.0` at index 0 is a float; the id of a chunk is an integer");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{1, 3}, ""}}));
  EXPECT_EQ(finding.help.text, "write `1`");
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{1, 3}, "1"}}));
}

TEST(FloatChunk, ItsEditCuresTheList) {
  const Checked checked = check_te("[1, -1.0]");
  const Edit& edit = checked.result.diagnostics.kept().at(0).help.edits.at(0);
  std::string text = checked.input.source.text;
  EXPECT_TRUE(
      check_te(text.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted());
}

TEST(FloatChunk, KnowsEveryWayToWriteAWholeFloat) {
  for (const std::string whole : {"1.", "1.0", "1e0", "10e-1", "+1.0", "-1.0", "-1e0", "1000.0"}) {
    EXPECT_EQ(check_te("[1, " + whole + ", -1]").findings(), Findings{"S03@1"}) << whole;
  }
}

TEST(FloatChunk, TellsAFloatOfAJsonListFromAnInteger) {
  EXPECT_EQ(check_text(R"({"order": [1, -1.0]})").findings(), Findings{"S03@1"});
  EXPECT_TRUE(check_text(R"({"order": [1, -1]})").accepted());
}

TEST(FloatChunk, ProposesNoIntegerThatNobodyCanRead) {
  const Checked readable = check_te("[1, 1e10, -1]");
  EXPECT_EQ(readable.result.diagnostics.kept().at(0).help.text, "write `10000000000`");
  EXPECT_TRUE(check_te("[1, 1e11, -1]").result.diagnostics.kept().at(0).help.edits.empty());
  const Checked endless = check_te("[1, 1e30, -1]");
  EXPECT_EQ(endless.findings(), Findings{"S03@1"});
  EXPECT_EQ(endless.result.diagnostics.kept().at(0).help.text, "write it as an integer");
  EXPECT_TRUE(endless.result.diagnostics.kept().at(0).help.edits.empty());
}

TEST(FloatChunk, AcceptsIntegersAndHalves) {
  EXPECT_TRUE(check_te("[1, +1, -1, -1, -1.5, -1.5]").accepted());
}

TEST(FloatChunk, LeavesOtherOddEntriesToTheirRules) {
  EXPECT_EQ(check_te("[1, 0.0, -1]").findings(), Findings{"S04@1"})
      << "0.0 is no chunk in any type";
  EXPECT_EQ(check_te("[1, -0.0, -1]").findings(), Findings{"S04@1"});
  EXPECT_EQ(check_te("[1, inf, -1]").findings(), Findings{"S01@1"});
  EXPECT_EQ(check_te("[1, 1.5, -1]").findings(), Findings{"S05@1"});
}

}  // namespace
}  // namespace capo
