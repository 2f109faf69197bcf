// The rules of core/rules/order.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using Messages = std::vector<std::string>;
using testing_support::because;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::labels;
using testing_support::says;

TEST(BackwardAhead, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsTheForwardThatComesTooLate", check_te("[1, -1, -1, 1]"), "S23@2"},
      {"ReportsEveryBackwardThatIsAhead", check_te("[-1, -1, 1, 1]"), "S23@0 S23@1"},
      {"", check_te("[-1, 1, -1, 1]"), "S23@0 S23@2"},
      {"JudgesEachChunkByItself", check_te("[1, -2, 2, -1]"), "S23@1"},
      {"NamesTheRankAndTheOrder", check_text("capo 1\nrank 0: F1 B1\nrank 1: B1 F1\n"), "S23@0",
       says("`B1` at index 0 of rank 1 is the backward of microbatch 0, whose forward comes only "
            "at index 1")},
      {"", check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: B1 F1\n"), "S23@0",
       says("`B1` at index 0 of rank 0's replay order is the backward of microbatch 0, whose "
            "forward comes only at index 1")},
      {"AcceptsABackwardRightBehindItsForward", check_te("[1, -1, 1, -1]")},
      {"", check_te("[1, 2, -2, -1]")},
      {"LeavesABackwardThatNeverGetsItsForwardToTheCounts", check_te("[1, -1, -1]"), "S15@2"},
      {"", check_te("[-1, -1, 1]"), "S23@0 S15@1"},
      {"LeavesNamedMicrobatchesToBackwardBeforeForward", check_text("capo 1\nrank 0: B1.0 F1.0\n"),
       "D01@0"},
      {"", check_text("capo 1\nrank 0: F1.0 F1.1 B1.1 B1.0\n"), "", because("last in, first out")},
      {"ConcernsOneThatRunsBesideItsForward", check_text("capo 1\nrank 0: (F1 B1)\n"), "S23@0",
       says("`B1` at index 0 is the backward of microbatch 0, whose forward runs in the same "
            "composite")},
      {"", check_text("capo 1\nrank 0: F1 (F1 B1) B1\n")},
      {"", check_text("capo 1\nrank 0: F1 (B1 B1) F1\n"), "S23@1"},
  });
}

TEST(WeightAhead, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsTheBackwardThatComesTooLate", check_te("[1, -1.5, -1]"), "S24@1"},
      {"ReportsEveryWeightGradientThatIsAhead", check_te("[1, 1, -1.5, -1.5, -1, -1]"),
       "S24@2 S24@3"},
      {"", check_te("[1, 1, -1, -1.5, -1.5, -1]"), "S24@4"},
      {"JudgesEachChunkByItself", check_te("[1, 2, -2, -1.5, -1, -2.5]"), "S24@3"},
      {"NamesTheRankAndTheOrder", check_text("capo 1\nrank 0: F1 B1 W1\nrank 1: F1 W1 B1\n"),
       "S24@1",
       says("`W1` at index 1 of rank 1 is the weight gradient of microbatch 0, whose backward "
            "comes only at index 2")},
      {"", check_text("capo 1\nrank 0: F1 B1 W1\nrank 0 replay: F1 W1 B1\n"), "S24@1"},
      {"AcceptsItAnywhereBehindItsBackward", check_te("[1, -1, -1.5]")},
      {"", check_te("[1, 1, -1, 2, 2, -2, -1, -1.5, -2, -1.5]")},
      {"DoesNotAskForTheForward", check_te("[-1, -1.5, 1]"), "S23@0"},
      {"LeavesOneThatNeverGetsItsBackwardToTheCounts", check_te("[1, -1, -1.5, -1.5]"), "S16@3"},
      {"", check_te("[1, -1.5]"), "S15@0"},
      {"LeavesAChunkThatDoesNotDelayToWeightUndeclared",
       check_te("[1, -1.5, -1]", {.delayed = DelayedChunks{}}), "S17@1"},
      {"LeavesNamedMicrobatchesToWeightBeforeBackward",
       check_text("capo 1\nrank 0: F1.0 W1.0 B1.0\n"), "D02@1"},
  });
}

TEST(WeightAhead, ConcernsOneThatRunsBesideItsBackward) {
  const Checked checked = check_text("capo 1\nrank 0: F1 (B1 W1)\n");
  ASSERT_EQ(checked.findings(), Found{"S24@1"});
  EXPECT_NE(checked.first().message.find("runs in the same composite"), std::string::npos);
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 F1 B1 (W1 W1) B1\n").findings(), Found{"S24@3"});
}

TEST(BackwardBeforeForward, OfACompositeIsMovedOutOfIt) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 (F1.1 B1.1) B1.0\n").first().labels.size(), 2U);
}

TEST(BackwardBeforeForward, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsBoth", check_csv("0F0,0B1,0F1,0B0\n"), "D01@1"},
      // A cell is one text of two actions: which of them is meant is said.
      {"NamesTheActionsOfAnOverlappedCell", check_csv("0F0,(0F1;0B1)OVERLAP_F_B,0B0\n"), "D01@1",
       labels("4+20")},
      {"", check_csv("(0F0;0B1)OVERLAP_F_B,(0F1;0B0)OVERLAP_F_B\n"), "D01@0",
       says("`0B1` of `(0F0;0B1)OVERLAP_F_B` at index 0 runs before `0F1`, whose activations it "
            "reads")},
      {"ConcernsTheInputHalf", check_csv("0I0,0F0,0W0\n"), "D01@0"},
      {"", check_text("capo 1\nmixed 1\nrank 0: F1.0 B1.0 I1.1 F1.1 W1.1\n"), "D01@2"},
      {"ReportsEveryMicrobatchOfEveryRank",
       check_text("capo 1\nrank 0: B1.0 F1.0 B1.1 F1.1\nrank 1: F1.0 B1.1 F1.1 B1.0\n"),
       "D01@0 D01@2 D01@1"},
      {"JudgesEachStageByItself", check_csv("0F0,1B0,1F0,0B0\n"), "D01@1"},
      {"JudgesTheReplayOrderToo",
       check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: B1.0 F1.0\n"), "D01@0"},
      {"AcceptsAnyOrderThatHasTheForwardFirst", check_csv("0F0,0B0\n")},
      {"", check_csv("0F1,0F0,0B1,0B0\n"), "", because("microbatches may overtake each other")},
      {"LeavesAMissingForwardToMissingAction", check_csv("0F0,0B0,0B1\n"), "S21@2"},
      {"LeavesCountedMicrobatchesToBackwardAhead", check_te("[-1, 1]"), "S23@0"},
  });
}

TEST(WeightBeforeBackward, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsBoth", check_csv("0F0,0W0,0I0\n"), "D02@1"},
      {"ConcernsEveryRankAndBothOrders", check_csv("0F0,0I0,0W0\n1F0,1W0,1I0\n"), "D02@1",
       says("`1W0` at index 1 of rank 1 runs before `1I0`, which queues its operands")},
      {"", check_text("capo 1\nrank 0: F1.0 B1.0 W1.0\nrank 0 replay: F1.0 W1.0 B1.0\n"), "D02@1"},
      {"ConcernsAComposite", check_text("capo 1\nrank 0: F1.0 (B1.0 W1.0)\n"), "D02@1",
       says("`W1.0` at index 1 runs together with `B1.0`, which queues its operands")},
      {"GoesByTheMicrobatch", check_csv("0F0,0F1,0I0,0W1,0I1,0W0\n"), "D02@3"},
      {"", check_csv("0F0,0F1,0I0,0I1,0W1,0W0\n"), "",
       because("microbatches may overtake each other")},
      {"InAMixedChunkOnlyTheInputHalfQueuesOperands", check_csv("0F0,0B0,0F1,0W1,0I1\n"), "D02@3"},
      {"", check_csv("0F0,0B0,0F1,0I1,0W1\n")},
      {"", check_csv("0F0,0W0,0B0\n"), "S22@1", because("a whole backward queues nothing")},
      {"DoesNotAskForTheForward", check_csv("0I0,0W0,0F0\n"), "D01@0"},
      {"LeavesAMissingBackwardToMissingAction", check_csv("0F0,0W0,0F1,0I1,0W1\n"), "S21@1"},
      {"LeavesAnUndeclaredWeightGradientToWeightUndeclared",
       check_text("capo 1\ndelayed none\nrank 0: F1.0 W1.0 B1.0\n"), "S17@1"},
      {"LeavesCountedMicrobatchesToWeightAhead", check_te("[1, -1.5, -1]"), "S24@1"},
  });
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

TEST(ParametersAway, StandsHereAndNotThere) {
  expect_findings({
      {"IsSaidOnceFromOneMoveToTheNext",
       check_rank("unshard1 F1.0 reshard1 B1.0 W1.0 unshard1 reshard1 F1.1 B1.1 W1.1"),
       "D05@3 D05@7"},
      {"AcceptsParametersThatAreThere", check_rank("F1.0 B1.0")},
      {"", check_rank("unshard1 F1.0 B1.0")},
      {"", check_rank("unshard1 F1.0 reshard1 unshard1 B1.0 reshard1")},
      {"", check_rank("F1.0 reshard1 unshard1 B1.0"), "", because("they were there before")},
      {"LooksAtEachChunkByItself", check_rank("unshard2 F1.0 F2.0 B2.0 reshard2 B1.0")},
      {"", check_csv("1UNSHARD,0F0,1F0,1RESHARD,1B0,0B0\n"), "D05@4",
       says("`1B0` at index 4 computes with the parameters of stage 1, which `1RESHARD` at index 3 "
            "has given up")},
      {"TakesTheMembersOfACompositeInTheirOrder", check_rank("(unshard1 F1.0) B1.0")},
      {"", check_rank("(F1.0 unshard1) B1.0"), "D05@0"},
  });
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

TEST(ExchangeOrder, ExpertsComputeBetweenTheirExchanges) {
  EXPECT_TRUE(
      check_rank("dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0").accepted());
  EXPECT_TRUE(check_rank("dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 I1.0 dispatch-B1.0 W1.0")
                  .accepted());
  // Two microbatches may be under way at once, each in a composite with what is not its own.
  EXPECT_TRUE(check_rank("dispatch-F1.0 (F1.0 dispatch-F1.1) (F1.1 combine-F1.0) combine-F1.1 "
                         "combine-B1.0 B1.0 dispatch-B1.0 combine-B1.1 B1.1 dispatch-B1.1")
                  .accepted());
  EXPECT_EQ(messages("dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 B1.0"),
            Messages{"`dispatch-F1.0` at index 0 runs before `F1.0` at index 1, which makes the "
                     "tokens that it takes along"});
  EXPECT_EQ(messages("F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0").size(), 1U);
  EXPECT_EQ(messages("(dispatch-F1.0 F1.0) combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0").size(),
            2U);
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

TEST(ExchangeOrder, StandsHereAndNotThere) {
  expect_findings({
      {"OfAMissingBackwardOtherRulesSpeak",
       check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.0\n"), "S21@0"},
      {"WithoutItsForwardAMicrobatchHasNoTokens",
       check_text("capo 1\nmicrobatches 2\nrank 0: F1.0 B1.0 dispatch-B1.1 B1.1\n"), "D06@2 S21@3"},
  });
}

TEST(ExchangeOrder, CountedExchangesAreMicrobatchesByTheirNumber) {
  EXPECT_TRUE(check_rank("F1 F1 dispatch-F1 dispatch-F1 B1 B1").accepted());
  EXPECT_EQ(messages("F1 dispatch-F1 dispatch-F1 B1").size(), 1U);
}

}  // namespace
}  // namespace capo
