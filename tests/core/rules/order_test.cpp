// The rules of core/rules/order.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using Findings = std::vector<std::string>;
using Messages = std::vector<std::string>;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;

TEST(BackwardAhead, ShowsTheForwardThatComesTooLate) {
  EXPECT_EQ(check_te("[1, -1, -1, 1]").findings(), Findings{"S23@2"});
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
      check_text("capo 1\nrank 0: F1 B1\nrank 1: B1 F1\n").first().message,
      "`B1` at index 0 of rank 1 is the backward of microbatch 0, whose forward comes only at "
      "index 1");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: B1 F1\n").first().message,
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
  EXPECT_EQ(checked.first().message,
            "`B1` at index 0 is the backward of microbatch 0, whose forward runs in the "
            "same composite");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 (F1 B1) B1\n").findings(), Findings{});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 (B1 B1) F1\n").findings(), Findings{"S23@1"});
}

TEST(WeightAhead, ShowsTheBackwardThatComesTooLate) {
  EXPECT_EQ(check_te("[1, -1.5, -1]").findings(), Findings{"S24@1"});
}

TEST(WeightAhead, ReportsEveryWeightGradientThatIsAhead) {
  EXPECT_EQ(check_te("[1, 1, -1.5, -1.5, -1, -1]").findings(), (Findings{"S24@2", "S24@3"}));
  EXPECT_EQ(check_te("[1, 1, -1, -1.5, -1.5, -1]").findings(), Findings{"S24@4"});
}

TEST(WeightAhead, JudgesEachChunkByItself) {
  EXPECT_EQ(check_te("[1, 2, -2, -1.5, -1, -2.5]").findings(), Findings{"S24@3"});
}

TEST(WeightAhead, NamesTheRankAndTheOrder) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 W1\nrank 1: F1 W1 B1\n").first().message,
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
  EXPECT_NE(checked.first().message.find("runs in the same composite"), std::string::npos);
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 F1 B1 (W1 W1) B1\n").findings(), Findings{"S24@3"});
}

TEST(BackwardBeforeForward, ShowsBoth) {
  const Checked checked = check_csv("0F0,0B1,0F1,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"D01@1"});
}

// A cell is one text of two actions: which of them is meant is said.
TEST(BackwardBeforeForward, NamesTheActionsOfAnOverlappedCell) {
  const Checked together = check_csv("0F0,(0F1;0B1)OVERLAP_F_B,0B0\n");
  ASSERT_EQ(together.findings(), Findings{"D01@1"});
  const Diagnostic& finding = together.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 20}, ""}}));

  const Checked before = check_csv("(0F0;0B1)OVERLAP_F_B,(0F1;0B0)OVERLAP_F_B\n");
  ASSERT_EQ(before.findings(), Findings{"D01@0"});
  EXPECT_EQ(before.first().message,
            "`0B1` of `(0F0;0B1)OVERLAP_F_B` at index 0 runs before `0F1`, whose activations it "
            "reads");
}

TEST(BackwardBeforeForward, OfACompositeIsMovedOutOfIt) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 (F1.1 B1.1) B1.0\n").first().labels.size(), 2U);
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

TEST(WeightBeforeBackward, ShowsBoth) {
  const Checked checked = check_csv("0F0,0W0,0I0\n");
  ASSERT_EQ(checked.findings(), Findings{"D02@1"});
}

TEST(WeightBeforeBackward, ConcernsEveryRankAndBothOrders) {
  EXPECT_EQ(check_csv("0F0,0I0,0W0\n1F0,1W0,1I0\n").first().message,
            "`1W0` at index 1 of rank 1 runs before `1I0`, which queues its operands");
  EXPECT_EQ(
      check_text("capo 1\nrank 0: F1.0 B1.0 W1.0\nrank 0 replay: F1.0 W1.0 B1.0\n").findings(),
      Findings{"D02@1"});
}

TEST(WeightBeforeBackward, ConcernsAComposite) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 (B1.0 W1.0)\n");
  ASSERT_EQ(checked.findings(), Findings{"D02@1"});
  EXPECT_EQ(checked.first().message,
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

Checked check_rank(const std::string& order) {
  return check_text("capo 1\nrank 0: " + order + "\n");
}

Diagnostic only_finding(const std::string& order) {
  const Checked checked = check_rank(order);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), 1U);
  return checked.first();
}

TEST(ParametersAway, ShowsTheComputationAndTheReshardBeforeIt) {
  const Diagnostic finding = only_finding("unshard1 F1.0 reshard1 B1.0");
  EXPECT_EQ(finding.rule, "D05");
  EXPECT_EQ(
      finding.message,
      "`B1.0` at index 3 computes with the parameters of chunk 1, which `reshard1` at index 2 "
      "has given up");
}

TEST(ParametersAway, ShowsWhatIsDoneTwice) {
  EXPECT_EQ(only_finding("unshard1 unshard1 F1.0 B1.0").message,
            "`unshard1` at index 1 gathers the parameters of chunk 1, which `unshard1` at index 0 "
            "has gathered");
}

TEST(ParametersAway, IsSaidOnceFromOneMoveToTheNext) {
  EXPECT_EQ(
      check_rank("unshard1 F1.0 reshard1 B1.0 W1.0 unshard1 reshard1 F1.1 B1.1 W1.1").findings(),
      (Findings{"D05@3", "D05@7"}));
}

TEST(ParametersAway, AcceptsParametersThatAreThere) {
  EXPECT_TRUE(check_rank("F1.0 B1.0").accepted());
  EXPECT_TRUE(check_rank("unshard1 F1.0 B1.0").accepted());
  EXPECT_TRUE(check_rank("unshard1 F1.0 reshard1 unshard1 B1.0 reshard1").accepted());
  EXPECT_TRUE(check_rank("F1.0 reshard1 unshard1 B1.0").accepted()) << "they were there before";
}

TEST(ParametersAway, LooksAtEachChunkByItself) {
  EXPECT_TRUE(check_rank("unshard2 F1.0 F2.0 B2.0 reshard2 B1.0").accepted());
  EXPECT_EQ(check_csv("1UNSHARD,0F0,1F0,1RESHARD,1B0,0B0\n").first().message,
            "`1B0` at index 4 computes with the parameters of stage 1, which `1RESHARD` at index 3 "
            "has given up");
}

TEST(ParametersAway, TakesTheMembersOfACompositeInTheirOrder) {
  EXPECT_TRUE(check_rank("(unshard1 F1.0) B1.0").accepted());
  EXPECT_EQ(check_rank("(F1.0 unshard1) B1.0").findings(), Findings{"D05@0"});
}

TEST(ParametersAway, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: unshard1 F1.0 B1.0\nrank 0 replay: F1.0 unshard1 B1.0\n")
                .of(Family::Dependencies)
                .size(),
            1U);
}

TEST(ParametersAway, LeavesAChunkThatTheRankDoesNotHaveToUnknownChunk) {
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1.0 B1.0 reshard2 reshard2\n").findings().at(0),
            "S12@2");
}

std::vector<std::string> messages(const std::string& order) {
  std::vector<std::string> all;
  const Checked checked = check_rank(order);
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "D06");
    EXPECT_EQ(finding.family, Family::Dependencies);
    all.push_back(finding.message);
  }
  return all;
}

TEST(ExchangeOrder, ShowsTheForwardThatComesLater) {
  const Checked checked = check_rank("dispatch-F1.0 F1.0 B1.0");
  ASSERT_EQ(checked.result.diagnostics.kept().size(), 1U);
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{15, 13}, ""}, {{29, 4}, ""}}));
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{0, 0, "dispatch-F1.0", "dispatch-F(c1,m0)"},
                                       {0, 1, "F1.0", "F(c1,m0)"}}));
}

TEST(ExchangeOrder, TokensOfAForwardAreBackForTheBackward) {
  EXPECT_EQ(messages("F1.0 dispatch-F1.0 B1.0 combine-F1.0"),
            Messages{"`combine-F1.0` at index 3 runs behind `B1.0` at index 2, which needs the "
                     "tokens in their place"});
  EXPECT_EQ(messages("F1.0 combine-B1.0 dispatch-F1.0 B1.0"),
            Messages{"`dispatch-F1.0` at index 2 runs behind `combine-B1.0` at index 1, which "
                     "belongs to the backward already"});
}

TEST(ExchangeOrder, ABackwardExchangesBeforeItOrBehindIt) {
  EXPECT_TRUE(check_rank("F1.0 combine-B1.0 dispatch-B1.0 B1.0").accepted());
  EXPECT_TRUE(check_rank("F1.0 B1.0 combine-B1.0 dispatch-B1.0").accepted());
  EXPECT_EQ(messages("F1.0 combine-B1.0 B1.0 dispatch-B1.0"),
            Messages{"`dispatch-B1.0` at index 3 runs behind `B1.0` at index 2, which so computes "
                     "while the tokens are away"});
  EXPECT_EQ(messages("combine-B1.0 F1.0 dispatch-B1.0 B1.0"),
            Messages{"`combine-B1.0` at index 0 runs before `F1.0` at index 1, which makes the "
                     "tokens that it takes along"});
}

TEST(ExchangeOrder, OfASplitBackwardTheInputHalfIsMeant) {
  EXPECT_EQ(messages("F1.0 combine-B1.0 I1.0 dispatch-B1.0 W1.0").size(), 1U);
  EXPECT_TRUE(check_rank("F1.0 combine-B1.0 dispatch-B1.0 I1.0 W1.0").accepted());
}

TEST(ExchangeOrder, InACompositeNothingIsBeforeOrBehind) {
  EXPECT_EQ(messages("(F1.0 dispatch-F1.0) B1.0"),
            Messages{"`dispatch-F1.0` at index 0 runs together with `F1.0`, which makes the tokens "
                     "that it takes along"});
  EXPECT_EQ(messages("F1.0 (combine-B1.0 B1.0)"),
            Messages{"`combine-B1.0` at index 1 runs together with `B1.0`, which needs the "
                     "tokens in their place"});
  EXPECT_TRUE(check_rank("F1.0 F1.1 (B1.0 dispatch-F1.1) B1.1").accepted());
}

TEST(ExchangeOrder, AMicrobatchThatDoesNotRunHasNoTokens) {
  const Messages none{
      "`dispatch-F1.7` at index 1 takes tokens of microbatch 7 along, which chunk 1 does not run"};
  EXPECT_EQ(messages("F1.0 dispatch-F1.7 B1.0"), none);
  EXPECT_EQ(messages("F1.0 combine-B1.7 B1.0").size(), 1U);
}

TEST(ExchangeOrder, OfAMissingBackwardOtherRulesSpeak) {
  EXPECT_EQ(check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.0\n").findings(),
            std::vector<std::string>{"S21@0"});
}

TEST(ExchangeOrder, WithoutItsForwardAMicrobatchHasNoTokens) {
  EXPECT_EQ(check_text("capo 1\nmicrobatches 2\nrank 0: F1.0 B1.0 dispatch-B1.1 B1.1\n").findings(),
            (std::vector<std::string>{"D06@2", "S21@3"}));
}

TEST(ExchangeOrder, CountedExchangesAreMicrobatchesByTheirNumber) {
  EXPECT_TRUE(check_rank("F1 F1 dispatch-F1 dispatch-F1 B1 B1").accepted());
  EXPECT_EQ(messages("F1 dispatch-F1 dispatch-F1 B1").size(), 1U);
}

}  // namespace
}  // namespace capo
