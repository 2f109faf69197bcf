#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(NotAHalf, ProposesTheWeightGradientOfTheSameChunk) {
  const Checked checked = check_te("[1, -1, -1.25]");
  ASSERT_EQ(checked.findings(), Findings{"S02@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`-1.25` at index 2 has a fraction other than one half");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 5}, ""}}));
  EXPECT_EQ(finding.help.text, "write `-1.5` for the weight gradient of chunk 1");
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{8, 5}, "-1.5"}}));
}

TEST(NotAHalf, ItsEditCuresTheList) {
  const Checked checked = check_te("[1, -1, -1.25]");
  const Edit& edit = checked.result.diagnostics.kept().at(0).help.edits.at(0);
  std::string text = checked.input.source.text;
  EXPECT_TRUE(
      check_te(text.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted());
}

TEST(NotAHalf, RoundsTheChunkTowardsZeroAsTheNotationDoes) {
  for (const auto& [written, meant] : {std::pair("-1.75", "-1.5"),
                                       {"-2.0001", "-2.5"},
                                       {"-2.9999", "-2.5"},
                                       {"-12.1", "-12.5"},
                                       {"-1.5000001", "-1.5"}}) {
    const Checked checked = check_te(std::string("[1, ") + written + ", -1]");
    EXPECT_EQ(checked.findings(), Findings{"S02@1"}) << written;
    EXPECT_EQ(checked.result.diagnostics.kept().at(0).help.edits.at(0).replacement, meant)
        << written;
  }
}

TEST(NotAHalf, AcceptsOneHalfHoweverItIsWritten) {
  for (const std::string half : {"-1.5", "-1.50", "-15e-1", "-1.4999999999999999999"}) {
    EXPECT_TRUE(check_te("[1, -1, " + half + "]").accepted()) << half;
  }
}

TEST(NotAHalf, ReadsAJsonListAlike) {
  EXPECT_EQ(check_text(R"({"order": [1, -1, -1.25]})").findings(), Findings{"S02@2"});
}

TEST(NotAHalf, LeavesOtherOddEntriesToTheirRules) {
  EXPECT_EQ(check_te("[1, -0.25, -1]").findings(), Findings{"S04@1"}) << "there is no chunk 0";
  EXPECT_EQ(check_te("[1, 1.25, -1]").findings(), Findings{"S05@1"}) << "a forward";
  EXPECT_EQ(check_te("[1, -1.0]").findings(), Findings{"S03@1"}) << "no fraction at all";
  EXPECT_EQ(check_te("[1, -inf, -1]").findings(), Findings{"S01@1"});
}

TEST(NotAHalf, LeavesWhatIsTooLargeToAnother) {
  EXPECT_EQ(check_te("[1, -1, -1e12]").findings(), Findings{"S03@2"});
  EXPECT_EQ(check_te("[1, -1, -1000000000000.5]").findings(), Findings{"S12@2"});
}

}  // namespace
}  // namespace capo
