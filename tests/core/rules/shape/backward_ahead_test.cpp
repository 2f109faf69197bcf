#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(BackwardAhead, ShowsTheForwardThatComesTooLate) {
  const Checked checked = check_te("[1, -1, -1, 1]");
  ASSERT_EQ(checked.findings(), Findings{"S23@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`-1` at index 2 is the backward of microbatch 1, whose forward comes only at index 3");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 2}, "the activations are not there yet"},
                                                {{12, 1}, "its forward is here"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "move it behind `1`; the k-th forward of a chunk and the k-th "
                          "backward belong together"}));
}

TEST(BackwardAhead, ReportsEveryBackwardThatIsAhead) {
  EXPECT_EQ(check_te("[-1, -1, 1, 1]").findings(), (Findings{"S23@0", "S23@1"}));
  EXPECT_EQ(check_te("[-1, 1, -1, 1]").findings(), (Findings{"S23@0", "S23@2"}));
}

TEST(BackwardAhead, JudgesEachChunkByItself) {
  EXPECT_EQ(check_te("[1, -2, 2, -1]").findings(), Findings{"S23@1"});
}

TEST(BackwardAhead, NamesTheRankAndTheOrder) {
  EXPECT_EQ(
      check_text("capo 1\nrank 0: F1 B1\nrank 1: B1 F1\n").result.diagnostics.kept().at(0).message,
      "`B1` at index 0 of rank 1 is the backward of microbatch 0, whose forward comes only at "
      "index 1");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: B1 F1\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`B1` at index 0 of rank 0's replay order is the backward of microbatch 0, whose "
            "forward comes "
            "only at index 1");
}

TEST(BackwardAhead, AcceptsABackwardRightBehindItsForward) {
  EXPECT_TRUE(check_te("[1, -1, 1, -1]").accepted());
  EXPECT_TRUE(check_te("[1, 2, -2, -1]").accepted());
}

TEST(BackwardAhead, LeavesABackwardThatNeverGetsItsForwardToTheCounts) {
  EXPECT_EQ(check_te("[1, -1, -1]").findings(), Findings{"S15@2"});
  EXPECT_EQ(check_te("[-1, -1, 1]").findings(), (Findings{"S23@0", "S15@1"}));
}

TEST(BackwardAhead, LeavesNamedMicrobatchesToBackwardBeforeForward) {
  EXPECT_EQ(check_text("capo 1\nrank 0: B1.0 F1.0\n").findings(), Findings{"D01@0"});
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 F1.1 B1.1 B1.0\n").accepted())
      << "last in, first out";
}

TEST(BackwardAhead, ConcernsOneThatRunsBesideItsForward) {
  const Checked checked = check_text("capo 1\nrank 0: (F1 B1)\n");
  ASSERT_EQ(checked.findings(), Findings{"S23@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`B1` at index 0 is the backward of microbatch 0, whose forward runs in the "
            "same composite");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 (F1 B1) B1\n").findings(), Findings{});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 (B1 B1) F1\n").findings(), Findings{"S23@1"});
}

}  // namespace
}  // namespace capo
