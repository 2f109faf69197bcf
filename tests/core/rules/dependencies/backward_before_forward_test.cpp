#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(BackwardBeforeForward, ShowsBoth) {
  const Checked checked = check_csv("0F0,0B1,0F1,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"D01@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`0B1` at index 1 runs before `0F1`, whose activations it reads");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 3}, ""}, {{8, 3}, "the forward is here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `0B1` behind `0F1`"}));
  EXPECT_EQ(finding.family, Family::Dependencies);
}

// A cell is one text of two actions: which of them is meant is said.
TEST(BackwardBeforeForward, NamesTheActionsOfAnOverlappedCell) {
  const Checked together = check_csv("0F0,(0F1;0B1)OVERLAP_F_B,0B0\n");
  ASSERT_EQ(together.findings(), Findings{"D01@1"});
  const Diagnostic& finding = together.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`0B1` of `(0F1;0B1)OVERLAP_F_B` at index 1 runs together with `0F1`, whose "
            "activations it reads");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 20}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `0B1` out of the composite, behind `0F1`"}));

  const Checked before = check_csv("(0F0;0B1)OVERLAP_F_B,(0F1;0B0)OVERLAP_F_B\n");
  ASSERT_EQ(before.findings(), Findings{"D01@0"});
  EXPECT_EQ(before.result.diagnostics.kept().front().message,
            "`0B1` of `(0F0;0B1)OVERLAP_F_B` at index 0 runs before `0F1`, whose activations it "
            "reads");
  EXPECT_EQ(before.result.diagnostics.kept().front().help,
            (Help{.text = "move `0B1` behind `0F1`"}));
}

TEST(BackwardBeforeForward, OfACompositeIsMovedOutOfIt) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 (F1.1 B1.1) B1.0\n");
  const Diagnostic& finding = checked.result.diagnostics.kept().at(0);
  EXPECT_EQ(finding.message,
            "`B1.1` at index 1 runs together with `F1.1`, whose activations it reads");
  EXPECT_EQ(finding.labels.size(), 2U);
  EXPECT_EQ(finding.help, (Help{.text = "move `B1.1` out of the composite, behind `F1.1`"}));
}

TEST(BackwardBeforeForward, ConcernsTheInputHalf) {
  EXPECT_EQ(check_csv("0I0,0F0,0W0\n").findings(), Findings{"D01@0"});
  EXPECT_EQ(check_text("capo 1\nmixed 1\nrank 0: F1.0 B1.0 I1.1 F1.1 W1.1\n").findings(),
            Findings{"D01@2"});
}

TEST(BackwardBeforeForward, ReportsEveryMicrobatchOfEveryRank) {
  const Checked checked =
      check_text("capo 1\nrank 0: B1.0 F1.0 B1.1 F1.1\nrank 1: F1.0 B1.1 F1.1 B1.0\n");
  EXPECT_EQ(checked.findings(), (Findings{"D01@0", "D01@2", "D01@1"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(2).message,
            "`B1.1` at index 1 of rank 1 runs before `F1.1`, whose activations it reads");
}

TEST(BackwardBeforeForward, JudgesEachStageByItself) {
  EXPECT_EQ(check_csv("0F0,1B0,1F0,0B0\n").findings(), Findings{"D01@1"});
}

TEST(BackwardBeforeForward, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: B1.0 F1.0\n").findings(),
            Findings{"D01@0"});
}

TEST(BackwardBeforeForward, AcceptsAnyOrderThatHasTheForwardFirst) {
  EXPECT_TRUE(check_csv("0F0,0B0\n").accepted());
  EXPECT_TRUE(check_csv("0F1,0F0,0B1,0B0\n").accepted()) << "microbatches may overtake each other";
}

TEST(BackwardBeforeForward, LeavesAMissingForwardToMissingAction) {
  EXPECT_EQ(check_csv("0F0,0B0,0B1\n").findings(), Findings{"S21@2"});
}

TEST(BackwardBeforeForward, LeavesCountedMicrobatchesToBackwardAhead) {
  EXPECT_EQ(check_te("[-1, 1]").findings(), Findings{"S23@0"});
}

}  // namespace
}  // namespace capo
