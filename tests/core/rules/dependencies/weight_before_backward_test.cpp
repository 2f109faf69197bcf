#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(WeightBeforeBackward, ShowsBoth) {
  const Checked checked = check_csv("0F0,0W0,0I0\n");
  ASSERT_EQ(checked.findings(), Findings{"D02@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`0W0` at index 1 runs before `0I0`, which queues its operands");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 3}, ""}, {{8, 3}, "the backward is here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `0W0` behind `0I0`"}));
  EXPECT_EQ(finding.family, Family::Dependencies);
}

TEST(WeightBeforeBackward, ConcernsEveryRankAndBothOrders) {
  EXPECT_EQ(check_csv("0F0,0I0,0W0\n1F0,1W0,1I0\n").result.diagnostics.kept().at(0).message,
            "`1W0` at index 1 of rank 1 runs before `1I0`, which queues its operands");
  EXPECT_EQ(
      check_text("capo 1\nrank 0: F1.0 B1.0 W1.0\nrank 0 replay: F1.0 W1.0 B1.0\n").findings(),
      Findings{"D02@1"});
}

TEST(WeightBeforeBackward, ConcernsAComposite) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 (B1.0 W1.0)\n");
  ASSERT_EQ(checked.findings(), Findings{"D02@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`W1.0` at index 1 runs together with `B1.0`, which queues its operands");
}

TEST(WeightBeforeBackward, GoesByTheMicrobatch) {
  EXPECT_EQ(check_csv("0F0,0F1,0I0,0W1,0I1,0W0\n").findings(), Findings{"D02@3"});
  EXPECT_TRUE(check_csv("0F0,0F1,0I0,0I1,0W1,0W0\n").accepted())
      << "microbatches may overtake each other";
}

TEST(WeightBeforeBackward, InAMixedChunkOnlyTheInputHalfQueuesOperands) {
  EXPECT_EQ(check_csv("0F0,0B0,0F1,0W1,0I1\n").findings(), Findings{"D02@3"});
  EXPECT_TRUE(check_csv("0F0,0B0,0F1,0I1,0W1\n").accepted());
  EXPECT_EQ(check_csv("0F0,0W0,0B0\n").findings(), Findings{"S22@1"})
      << "a whole backward queues nothing";
}

TEST(WeightBeforeBackward, DoesNotAskForTheForward) {
  EXPECT_EQ(check_csv("0I0,0W0,0F0\n").findings(), Findings{"D01@0"});
}

TEST(WeightBeforeBackward, LeavesAMissingBackwardToMissingAction) {
  EXPECT_EQ(check_csv("0F0,0W0,0F1,0I1,0W1\n").findings(), Findings{"S21@1"});
}

TEST(WeightBeforeBackward, LeavesAnUndeclaredWeightGradientToWeightUndeclared) {
  EXPECT_EQ(check_text("capo 1\ndelayed none\nrank 0: F1.0 W1.0 B1.0\n").findings(),
            Findings{"S17@1"});
}

TEST(WeightBeforeBackward, LeavesCountedMicrobatchesToWeightAhead) {
  EXPECT_EQ(check_te("[1, -1.5, -1]").findings(), Findings{"S24@1"});
}

}  // namespace
}  // namespace capo
