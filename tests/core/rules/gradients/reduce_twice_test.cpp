#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(ReduceTwice, ShowsBoth) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 reduce1\n");
  ASSERT_EQ(checked.findings(), Findings{"G15@3"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`reduce1` at index 3 reduces the gradients of chunk 1 a second time");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{33, 7}, ""}, {{25, 7}, "reduced here already"}}));
  EXPECT_EQ(finding.help, (Help{.text = "remove one of the two"}));
  EXPECT_EQ(finding.family, Family::Gradients);
  EXPECT_EQ(finding.severity, Severity::Error);
}

TEST(ReduceTwice, CountsEachBehindTheFirst) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 reduce1 reduce1\n").findings(),
            (Findings{"G15@3", "G15@4"}));
}

TEST(ReduceTwice, LeavesWhatIsReducedTooEarlyToReduceEarly) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 F1.1 B1.1 reduce1 reduce1\n").findings(),
            Findings{"G13@2"});
}

TEST(ReduceTwice, LooksAtEachChunkOfEachRankByItself) {
  EXPECT_TRUE(check_csv("0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD\n").accepted());
  EXPECT_TRUE(
      check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1\n").accepted());
  const Checked checked = check_csv("0F0,1F0,1B0,0B0,0REDUCE_GRAD,1REDUCE_GRAD,0REDUCE_GRAD\n");
  ASSERT_EQ(checked.findings(), Findings{"G15@6"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`0REDUCE_GRAD` at index 6 reduces the gradients of stage 0 a second time");
}

TEST(ReduceTwice, JudgesTheReplayOrderToo) {
  EXPECT_EQ(
      check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 0 replay: F1.0 B1.0 reduce1 reduce1\n")
          .of(Family::Gradients)
          .size(),
      1U);
}

}  // namespace
}  // namespace capo
