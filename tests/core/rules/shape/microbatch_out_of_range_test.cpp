#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(MicrobatchOutOfRange, NamesTheRange) {
  const Checked checked = check_csv("0F0,0B0,0F1,0B1,0F7\n", {.microbatches = 2});
  ASSERT_EQ(checked.findings(), Findings{"S19@4"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "`0F7` at index 4 is an action of microbatch 7, but the step has 2 microbatches (0 to 1)");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{16, 3}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "correct the microbatch, or the number that is declared"}));
}

TEST(MicrobatchOutOfRange, BeginsRightBehindTheLast) {
  const std::string table = "0F0,0F1,0B0,0B1\n";
  EXPECT_EQ(check_csv(table, {.microbatches = 1}).findings(), (Findings{"S19@1", "S19@3"}));
  EXPECT_TRUE(check_csv(table, {.microbatches = 2}).accepted());
}

TEST(MicrobatchOutOfRange, ConcernsTransfersToo) {
  EXPECT_EQ(check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 send-F1.7 B1.0\n").findings(),
            Findings{"S19@1"});
  EXPECT_EQ(check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.7 B1.0\n").findings(),
            Findings{"S19@1"});
}

TEST(MicrobatchOutOfRange, NamesTheRank) {
  const Checked checked =
      check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0 F1.1\n");
  ASSERT_EQ(checked.findings(), Findings{"S19@2"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`F1.1` at index 2 of rank 1 is an action of microbatch 1, but the step has 1 "
            "microbatch (only 0)");
}

TEST(MicrobatchOutOfRange, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F1.1 B1.0\n")
                .findings(),
            Findings{"S19@1"});
}

TEST(MicrobatchOutOfRange, KnowsNoRangeThatNobodyDeclared) {
  EXPECT_TRUE(check_csv("0F0,0F1,0B0,0B1\n").accepted());
}

TEST(MicrobatchOutOfRange, AsksNoActionOfAWholeStage) {
  EXPECT_TRUE(check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n", {.microbatches = 1}).accepted());
}

TEST(MicrobatchOutOfRange, IsTheOnlyRuleToSpeakOfSuchAMicrobatch) {
  // It has no forward, and two backwards that come first.
  EXPECT_EQ(check_csv("0B5,0B5,0F0,0B0\n", {.microbatches = 1}).findings(),
            (Findings{"S19@0", "S19@1", "S20@0"}))
      << "a repetition is a fault in any range";
}

TEST(MicrobatchOutOfRange, LeavesCountedMicrobatchesToUnequalMicrobatches) {
  EXPECT_EQ(check_te("[1, 1, -1, -1]", {.microbatches = 1}).findings(), Findings{"S14@1"});
}

}  // namespace
}  // namespace capo
