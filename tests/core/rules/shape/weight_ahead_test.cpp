#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(WeightAhead, ShowsTheBackwardThatComesTooLate) {
  const Checked checked = check_te("[1, -1.5, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S24@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`-1.5` at index 1 is the weight gradient of microbatch 0, whose backward comes "
            "only at index 2");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 4}, "nothing is queued for it yet"},
                                                {{10, 2}, "its backward is here"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "move it behind `-1`; the k-th backward of a chunk and the k-th "
                          "weight gradient belong together"}));
}

TEST(WeightAhead, ReportsEveryWeightGradientThatIsAhead) {
  EXPECT_EQ(check_te("[1, 1, -1.5, -1.5, -1, -1]").findings(), (Findings{"S24@2", "S24@3"}));
  EXPECT_EQ(check_te("[1, 1, -1, -1.5, -1.5, -1]").findings(), Findings{"S24@4"});
}

TEST(WeightAhead, JudgesEachChunkByItself) {
  EXPECT_EQ(check_te("[1, 2, -2, -1.5, -1, -2.5]").findings(), Findings{"S24@3"});
}

TEST(WeightAhead, NamesTheRankAndTheOrder) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 W1\nrank 1: F1 W1 B1\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`W1` at index 1 of rank 1 is the weight gradient of microbatch 0, whose backward "
            "comes only at "
            "index 2");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 W1\nrank 0 replay: F1 W1 B1\n").findings(),
            Findings{"S24@1"});
}

TEST(WeightAhead, AcceptsItAnywhereBehindItsBackward) {
  EXPECT_TRUE(check_te("[1, -1, -1.5]").accepted());
  EXPECT_TRUE(check_te("[1, 1, -1, 2, 2, -2, -1, -1.5, -2, -1.5]").accepted());
}

TEST(WeightAhead, DoesNotAskForTheForward) {
  EXPECT_EQ(check_te("[-1, -1.5, 1]").findings(), Findings{"S23@0"});
}

TEST(WeightAhead, LeavesOneThatNeverGetsItsBackwardToTheCounts) {
  EXPECT_EQ(check_te("[1, -1, -1.5, -1.5]").findings(), Findings{"S16@3"});
  EXPECT_EQ(check_te("[1, -1.5]").findings(), Findings{"S15@0"});
}

TEST(WeightAhead, LeavesAChunkThatDoesNotDelayToWeightUndeclared) {
  EXPECT_EQ(check_te("[1, -1.5, -1]", {.delayed = DelayedChunks{}}).findings(), Findings{"S17@1"});
}

TEST(WeightAhead, LeavesNamedMicrobatchesToWeightBeforeBackward) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 W1.0 B1.0\n").findings(), Findings{"D02@1"});
}

TEST(WeightAhead, ConcernsOneThatRunsBesideItsBackward) {
  const Checked checked = check_text("capo 1\nrank 0: F1 (B1 W1)\n");
  ASSERT_EQ(checked.findings(), Findings{"S24@1"});
  EXPECT_NE(checked.result.diagnostics.kept().front().message.find("runs in the same composite"),
            std::string::npos);
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 F1 B1 (W1 W1) B1\n").findings(), Findings{"S24@3"});
}

}  // namespace
}  // namespace capo
