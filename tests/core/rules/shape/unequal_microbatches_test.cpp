#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(UnequalMicrobatches, PointsAtTheFirstForwardTooMany) {
  const Checked checked = check_te("[1, 1, 2, -2, -1, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S14@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "chunk 1 has 2 forwards, but the other chunks have 1");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 1}, "one too many from here"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "remove 1 forward of chunk 1: every chunk runs every microbatch once"}));
}

TEST(UnequalMicrobatches, SaysWhatTransformerEngineTakesTheSurplusFor) {
  const Checked first = check_te("[1, 1, 2, -2, -1, -1]");
  EXPECT_EQ(
      first.result.diagnostics.kept().at(0).notes,
      (std::vector<Note>{{"TransformerEngine counts totals only: to it this entry is a forward of "
                          "chunk 2",
                          {}}}));
  const Checked last = check_te("[1, 2, 2, -2, -2, -1]");
  EXPECT_EQ(last.findings(), Findings{"S14@2"});
  EXPECT_TRUE(last.result.diagnostics.kept().at(0).notes.empty())
      << "no chunk comes behind the last";
}

TEST(UnequalMicrobatches, PointsAtTheLastForwardWhereSomeLack) {
  const Checked checked = check_te("[1, 2, 2, 3, 3, -3, -3, -2, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S14@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "chunk 1 has 1 forward, but the other chunks have 2");
  EXPECT_EQ(finding.help,
            (Help{.text = "add 1 forward of chunk 1: every chunk runs every microbatch once"}));
}

TEST(UnequalMicrobatches, PointsAtABackwardWhereThereIsNoForwardAtAll) {
  EXPECT_EQ(check_te("[1, -1, -2]").findings(), Findings{"S14@2"});
}

TEST(UnequalMicrobatches, PointsNowhereWhereOnlyAWeightGradientIsLeftOfAChunk) {
  EXPECT_EQ(check_te("[1, -1, -2.5]").findings(), (Findings{"S14@-", "S16@2"}));
}

TEST(UnequalMicrobatches, TakesTheLargerNumberWhereTwoAreEquallyUsual) {
  EXPECT_EQ(check_te("[1, 2, 2, 2, -2, -2, -2, -1]").findings(), Findings{"S14@0"});
  EXPECT_EQ(check_te("[1, 2, 2, -2, -2, -1]").findings(), Findings{"S14@2"})
      << "unless the smaller is what TransformerEngine makes of the length of the list";
}

TEST(UnequalMicrobatches, HoldsTheOrderToTheDeclaredNumber) {
  const Checked checked = check_te("[1, -1]", {.microbatches = 3});
  ASSERT_EQ(checked.findings(), Findings{"S14@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 1 has 1 forward, but the step is declared to have 3 microbatches");
  EXPECT_TRUE(check_te("[1, -1]", {.microbatches = 1}).accepted());
  EXPECT_EQ(check_te("[1, 1, -1, -1]", {.microbatches = 1}).findings(), Findings{"S14@1"});
}

TEST(UnequalMicrobatches, GoesByWhatMostChunksOfAllRanksHave) {
  EXPECT_EQ(
      check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 F1 B1 B1\nrank 2: F1 F1 B1 B1\n").findings(),
      Findings{"S14@0"});
  const Checked checked = check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 F1 B1 B1\nrank 2: F1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S14@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 1 has 2 forwards on rank 1, but the other chunks have 1");
}

TEST(UnequalMicrobatches, HoldsTheReplayOrderToTheSameNumber) {
  EXPECT_EQ(
      check_text("capo 1\nmicrobatches 2\nrank 0: F1 F1 B1 B1\nrank 0 replay: F1 B1\n").findings(),
      Findings{"S14@0"});
}

TEST(UnequalMicrobatches, AcceptsEqualNumbers) {
  EXPECT_TRUE(check_te("[1, 1, 2, 2, -2, -2, -1, -1]").accepted());
}

TEST(UnequalMicrobatches, LeavesSurplusAndMissingBackwardsToBackwardCount) {
  EXPECT_EQ(check_te("[1, 1, 2, 2, -2, -2, -1]").findings(), Findings{"S15@1"});
}

TEST(UnequalMicrobatches, LeavesAnAbsentChunkToMissingChunk) {
  EXPECT_EQ(check_te("[2, 2, -2, -2]", {.microbatches = 2}).findings(), Findings{"S13@0"});
}

TEST(UnequalMicrobatches, LeavesNamedMicrobatchesToTheRulesOfActions) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 F1.0 B1.0\n").findings(), Findings{"S20@0"});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 B1.1\n").findings(), Findings{"S21@2"});
}

}  // namespace
}  // namespace capo
