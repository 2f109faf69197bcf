// The rules of core/rules/counts.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using Findings = std::vector<std::string>;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;

const TeDeclarations kOneChunk{.layers = {.form = Layers::Form::List, .values = {1}}};

TEST(UnknownChunk, NamesTheChunkAndTheDeclaredOne) {
  const Checked checked = check_te("[1, 2, -2, -1]", kOneChunk);
  ASSERT_EQ(checked.findings(), (Findings{"S12@1", "S12@2"}));
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{4, 1}, ""}}));
}

TEST(UnknownChunk, NamesTheRangeOfSeveralDeclaredChunks) {
  EXPECT_EQ(check_text("capo 1\nchunks 2\nrank 0: F1 F2 F3 B2 B1\n").findings(), Findings{"S12@2"});
}

TEST(UnknownChunk, AcceptsTheLastDeclaredChunk) {
  EXPECT_TRUE(check_text("capo 1\nchunks 2\nrank 0: F1 F2 B2 B1\n").accepted());
}

TEST(UnknownChunk, HoldsEveryRankToItsOwnNumber) {
  const Checked checked = check_text(
      "capo 1\nrank 0 chunks 2\nrank 1 chunks 1\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n");
  ASSERT_EQ(checked.findings(), (Findings{"S12@1", "S12@2"}));
  EXPECT_EQ(checked.first().witness.tasks.at(0).rank, 1);
}

TEST(UnknownChunk, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 F2\n").findings(),
            Findings{"S12@2"});
}

TEST(UnknownChunk, WithoutADeclarationAnOrderIsAtLeastAsLongAsItsLargestChunk) {
  EXPECT_EQ(check_te("[1, 4, -1]").findings(), Findings{"S12@1"});
  EXPECT_EQ(check_te("[1, 3, -1]").findings(), (Findings{"S13@1", "S15@1"}))
      << "three entries, chunk 3";
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 F9 B1\n").findings(), Findings{"S12@1"});
  EXPECT_EQ(check_te("[99999999999999999999, 1, -1]").findings(), Findings{"S12@0"});
}

TEST(UnknownChunk, IsTheOnlyRuleToSpeakOfSuchAnEntry) {
  // A third forward, a second backward and a weight gradient: of a chunk that does not exist.
  EXPECT_EQ(check_te("[1, -1, -2.5, -2, 2, 2]", kOneChunk).findings(),
            (Findings{"S12@2", "S12@3", "S12@4", "S12@5"}));
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1.0 B1.0 B2.0 F2.0 F2.0\n").findings(),
            (Findings{"S12@2", "S12@3", "S12@4"}));
}

TEST(UnknownChunk, ConcernsActionsOfAWholeStageAndNoIdleSlots) {
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1 . B1 reduce2\n").findings(),
            Findings{"S12@3"});
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1 B1 combine-B2\n").findings(),
            Findings{"S12@2"});
}

TEST(UnknownChunk, OfAReplayIsOneThatNobodyCaptured) {
  const Checked checked =
      check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F2.0 B2.0 B1.0\n");
  ASSERT_EQ(checked.findings(), (Findings{"S12@1", "S12@2"}));
  EXPECT_EQ(checked.first().message,
            "`F2.0` at index 1 of rank 0's replay order names a chunk that the capture order does "
            "not have");
}

TEST(MissingChunk, PointsAtTheLargestChunkThatIsNamed) {
  EXPECT_EQ(check_te("[1, 3, -3, -1]").findings(), Findings{"S13@1"});
}

TEST(MissingChunk, SaysThatADeclaredChunkIsMissingAndPointsNowhere) {
  const Checked checked =
      check_te("[1, -1]", {.layers = {.form = Layers::Form::List, .values = {1, 1}}});
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_TRUE(checked.first().labels.empty());
}

TEST(MissingChunk, ReportsEveryGap) {
  EXPECT_EQ(check_te("[4, -4, 2, -2]").findings(), (Findings{"S13@0", "S13@0"}))
      << "chunks 1 and 3";
  EXPECT_EQ(check_te("[2, -2]").findings(), Findings{"S13@0"}) << "counted from 0, shifted by one";
}

TEST(MissingChunk, DoesNotPointAtAChunkThatIsUnknown) {
  EXPECT_EQ(check_te("[2, -2, 4]").findings(), (Findings{"S13@0", "S12@2"}));
}

TEST(MissingChunk, NamesTheRank) {
  EXPECT_EQ(check_text("capo 1\nchunks 2\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n").findings(),
            Findings{"S13@-"});
}

TEST(MissingChunk, JudgesTheReplayOrderByItself) {
  const Checked checked =
      check_text("capo 1\nchunks 2\nmicrobatches 1\nrank 0: F1 F2 B2 B1\nrank 0 replay: F1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_EQ(checked.first().message,
            "chunk 2 never runs in rank 0's replay order: the rank is declared to have 2 chunks");
}

TEST(MissingChunk, SpeaksOfStagesWhereATableDoes) {
  EXPECT_EQ(check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}}).findings(), Findings{"S13@-"});
}

TEST(MissingChunk, AcceptsChunksWithoutGaps) {
  EXPECT_TRUE(check_te("[1, 2, 3, -3, -2, -1]").accepted());
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n").accepted())
      << "each rank its own";
}

TEST(MissingChunk, IsTheOnlyRuleToSpeakOfAnAbsentChunk) {
  EXPECT_EQ(check_te("[1, 3, -3, -1]", {.microbatches = 1}).findings(), Findings{"S13@1"});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 F3.0 B3.0 B1.0\n").findings(), Findings{"S13@1"});
}

TEST(MissingChunk, TakesNoTransferForARun) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 send-F2 .\n").findings(), Findings{"S13@2"});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 dispatch-F2 .\n").findings(), Findings{"S13@2"});
}

TEST(MissingChunk, LeavesAChunkWithOnlyHalfItsActionsToTheCounts) {
  EXPECT_EQ(check_te("[1, 2, -2]").findings(), Findings{"S15@0"});
}

TEST(MissingChunk, OfAReplayPointsNowhere) {
  const Checked checked =
      check_text("capo 1\nrank 0: F1.0 F2.0 B2.0 B1.0\nrank 0 replay: F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_TRUE(checked.first().labels.empty());
}

TEST(MissingChunk, OfATableWithTransfersIsAStage) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
                      {.stage_to_rank = {{0, 1, 0}}})
                .findings(),
            Findings{"S13@-"});
}

TEST(UnequalMicrobatches, PointsAtTheFirstForwardTooMany) {
  EXPECT_EQ(check_te("[1, 1, 2, -2, -1, -1]").findings(), Findings{"S14@1"});
}

TEST(UnequalMicrobatches, SaysWhatTransformerEngineTakesTheSurplusFor) {
  const Checked last = check_te("[1, 2, 2, -2, -2, -1]");
  EXPECT_EQ(last.findings(), Findings{"S14@2"});
  EXPECT_TRUE(last.first().notes.empty()) << "no chunk comes behind the last";
}

TEST(UnequalMicrobatches, PointsAtTheLastForwardWhereSomeLack) {
  const Checked checked = check_te("[1, 2, 2, 3, 3, -3, -3, -2, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S14@0"});
  EXPECT_EQ(checked.first().message, "chunk 1 has 1 forward, but the other chunks have 2");
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
  EXPECT_EQ(checked.first().message,
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
  EXPECT_EQ(checked.first().message,
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

// The finding about the entry at `index`.
const Diagnostic& at(const Checked& checked, std::size_t index) {
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    if (finding.witness.tasks.at(0).index == index) return finding;
  }
  throw std::out_of_range("no finding there");
}

TEST(BackwardCount, NamesTheSurplusEntryAndTheChunkThatLacksOne) {
  const Checked checked = check_te("[1, 2, -1, -1]");
  const Diagnostic& finding = at(checked, 3);
  EXPECT_EQ(finding.rule, "S15");
  EXPECT_EQ(finding.help,
            (Help{.text = "chunk 2 lacks a backward; is `-2` meant?", .edits = {{{11, 2}, "-2"}}}));
}

TEST(BackwardCount, ItsEditCuresTheOrderInEveryForm) {
  for (const std::string text :
       {"[1, 2, -1, -1]", "capo 1\nrank 0: F1 F2 B1 B1\n", R"({"order": [1, 2, -1, -1]})"}) {
    const Checked checked = check_text(text);
    const Edit& edit = at(checked, 3).help.edits.at(0);
    std::string cured = text;
    EXPECT_TRUE(
        check_text(cured.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted())
        << cured;
  }
}

TEST(BackwardCount, ProposesNoChunkWhereSeveralLackABackward) {
  EXPECT_EQ(check_te("[1, 2, 3, -1, -1, -1]").findings(), (Findings{"S15@1", "S15@2", "S15@4"}));
}

TEST(BackwardCount, SaysNothingOfTransformerEngineWhereNoChunkComesBehind) {
  EXPECT_TRUE(at(check_te("[1, 2, -2, -2]"), 3).notes.empty());
}

TEST(BackwardCount, CountsWhatItDoesNotDescribe) {
  std::string text = "[";
  for (int chunk = 1; chunk <= 150; ++chunk) text += std::to_string(chunk) + " ";
  const Checked checked = check_te(text + "]");
  EXPECT_EQ(checked.result.diagnostics.errors(), 150u);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), Diagnostics::kDefaultLimit);
}

TEST(BackwardCount, PointsAtTheForwardThatHasNoBackward) {
  EXPECT_EQ(check_te("[1, 1, 2, 2, -2, -2, -1]").findings(), Findings{"S15@1"});
}

TEST(BackwardCount, SaysThatAChunkHasNoBackwardAtAll) {
  const Checked checked = check_te("[1, 2, -2]");
  ASSERT_EQ(checked.findings(), Findings{"S15@0"});
  EXPECT_EQ(checked.first().message, "chunk 1 has 1 forward and no backward");
}

TEST(BackwardCount, PointsAtTheFirstSurplusEntryHoweverTheyAreOrdered) {
  EXPECT_EQ(check_te("[-1, -1, 1]").findings(), (Findings{"S23@0", "S15@1"}));
  EXPECT_EQ(check_te("[1, -1, -1, -1]", {.microbatches = 1}).findings(), Findings{"S15@2"});
}

TEST(BackwardCount, NamesTheRankAndTheOrder) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 B1 B1\n").first().message,
            "`B1` at index 2 of rank 1 is a backward of chunk 1 without a forward: the chunk has 1 "
            "forward "
            "and 2 backwards");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 B1\n").first().message,
            "`B1` at index 2 of rank 0's replay order is a backward of chunk 1 without a forward: "
            "the chunk "
            "has 1 forward and 2 backwards");
}

TEST(BackwardCount, SaysNothingOfTransformerEngineInOtherForms) {
  EXPECT_TRUE(at(check_text("capo 1\nrank 0: F1 F2 B1 B1\n"), 3).notes.empty());
}

TEST(BackwardCount, AcceptsEqualNumbersInAnyOrder) {
  EXPECT_TRUE(check_te("[1, 1, 2, -1, 2, -2, -1, -2]").accepted());
}

TEST(BackwardCount, LeavesTheForwardsToUnequalMicrobatchesWhereTheBackwardsAreRight) {
  EXPECT_EQ(check_te("[1, 1, -1, -1, 2, -2, -2]").findings(), Findings{"S14@4"});
  EXPECT_EQ(check_te("[1, 1, -1]", {.microbatches = 1}).findings(), Findings{"S14@1"});
}

TEST(BackwardCount, LeavesTheOrderOfEntriesToBackwardAhead) {
  EXPECT_EQ(check_te("[1, -1, -1, 1]").findings(), Findings{"S23@2"});
}

TEST(BackwardCount, LeavesNamedMicrobatchesToMissingAndRepeatedAction) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 F1.1 B1.0\n").findings(), Findings{"S21@1"});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 B1.0\n").findings(), Findings{"S20@1"});
}

TEST(BackwardCount, CountsNoDispatchAndNoCombine) {
  const auto shape = [](const std::string& order) {
    Findings findings = check_text("capo 1\nrank 0: " + order + "\n").findings();
    std::erase_if(findings, [](const std::string& finding) { return !finding.starts_with("S"); });
    return findings;
  };
  EXPECT_EQ(shape("F1 dispatch-F1 dispatch-F1 B1 dispatch-B1 combine-B1 combine-B1"), Findings{});
  EXPECT_EQ(shape("F1.0 combine-F1.0 B1.0 dispatch-B1.0 dispatch-B1.0"), Findings{});
}

}  // namespace
}  // namespace capo
