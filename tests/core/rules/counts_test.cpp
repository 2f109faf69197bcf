// The rules of core/rules/counts.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::labels;
using testing_support::says;

const TeDeclarations kOneChunk{.layers = {.form = Layers::Form::List, .values = {1}}};

TEST(UnknownChunk, HoldsEveryRankToItsOwnNumber) {
  const Checked checked = check_text(
      "capo 1\nrank 0 chunks 2\nrank 1 chunks 1\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n");
  ASSERT_EQ(checked.findings(), (Found{"S12@1", "S12@2"}));
  EXPECT_EQ(checked.first().witness.tasks.at(0).rank, 1);
}

TEST(UnknownChunk, IsTheOnlyRuleToSpeakOfSuchAnEntry) {
  // A third forward, a second backward and a weight gradient: of a chunk that does not exist.
  EXPECT_EQ(check_te("[1, -1, -2.5, -2, 2, 2]", kOneChunk).findings(),
            (Found{"S12@2", "S12@3", "S12@4", "S12@5"}));
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1.0 B1.0 B2.0 F2.0 F2.0\n").findings(),
            (Found{"S12@2", "S12@3", "S12@4"}));
}

TEST(UnknownChunk, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheChunkAndTheDeclaredOne", check_te("[1, 2, -2, -1]", kOneChunk), "S12@1 S12@2",
       labels("4+1")},
      {"NamesTheRangeOfSeveralDeclaredChunks",
       check_text("capo 1\nchunks 2\nrank 0: F1 F2 F3 B2 B1\n"), "S12@2"},
      {"AcceptsTheLastDeclaredChunk", check_text("capo 1\nchunks 2\nrank 0: F1 F2 B2 B1\n")},
      {"JudgesTheReplayOrderToo",
       check_text("capo 1\nchunks 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 F2\n"), "S12@2"},
      {"WithoutADeclarationAnOrderIsAtLeastAsLongAsItsLargestChunk", check_te("[1, 4, -1]"),
       "S12@1"},
      {"", check_te("[1, 3, -1]"), "S13@1 S15@1", because("three entries, chunk 3")},
      {"", check_text("capo 1\nrank 0: F1 F9 B1\n"), "S12@1"},
      {"", check_te("[99999999999999999999, 1, -1]"), "S12@0"},
      {"ConcernsActionsOfAWholeStageAndNoIdleSlots",
       check_text("capo 1\nchunks 1\nrank 0: F1 . B1 reduce2\n"), "S12@3"},
      {"", check_text("capo 1\nchunks 1\nrank 0: F1 B1 combine-B2\n"), "S12@2"},
      {"OfAReplayIsOneThatNobodyCaptured",
       check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F2.0 B2.0 B1.0\n"), "S12@1 S12@2",
       says("`F2.0` at index 1 of rank 0's replay order names a chunk that the capture order does "
            "not have")},
  });
}

TEST(MissingChunk, SaysThatADeclaredChunkIsMissingAndPointsNowhere) {
  const Checked checked =
      check_te("[1, -1]", {.layers = {.form = Layers::Form::List, .values = {1, 1}}});
  ASSERT_EQ(checked.findings(), Found{"S13@-"});
  EXPECT_TRUE(checked.first().labels.empty());
}

TEST(MissingChunk, OfAReplayPointsNowhere) {
  const Checked checked =
      check_text("capo 1\nrank 0: F1.0 F2.0 B2.0 B1.0\nrank 0 replay: F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Found{"S13@-"});
  EXPECT_TRUE(checked.first().labels.empty());
}

TEST(MissingChunk, StandsHereAndNotThere) {
  expect_findings({
      {"PointsAtTheLargestChunkThatIsNamed", check_te("[1, 3, -3, -1]"), "S13@1"},
      {"ReportsEveryGap", check_te("[4, -4, 2, -2]"), "S13@0 S13@0", because("chunks 1 and 3")},
      {"", check_te("[2, -2]"), "S13@0", because("counted from 0, shifted by one")},
      {"DoesNotPointAtAChunkThatIsUnknown", check_te("[2, -2, 4]"), "S13@0 S12@2"},
      {"NamesTheRank", check_text("capo 1\nchunks 2\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n"),
       "S13@-"},
      {"JudgesTheReplayOrderByItself",
       check_text("capo 1\nchunks 2\nmicrobatches 1\nrank 0: F1 F2 B2 B1\nrank 0 replay: F1 B1\n"),
       "S13@-",
       says("chunk 2 never runs in rank 0's replay order: the rank is declared to have 2 chunks")},
      {"SpeaksOfStagesWhereATableDoes", check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}}),
       "S13@-"},
      {"AcceptsChunksWithoutGaps", check_te("[1, 2, 3, -3, -2, -1]")},
      {"", check_text("capo 1\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n"), "",
       because("each rank its own")},
      {"IsTheOnlyRuleToSpeakOfAnAbsentChunk", check_te("[1, 3, -3, -1]", {.microbatches = 1}),
       "S13@1"},
      {"", check_text("capo 1\nrank 0: F1.0 F3.0 B3.0 B1.0\n"), "S13@1"},
      {"TakesNoTransferForARun", check_text("capo 1\nrank 0: F1 B1 send-F2 .\n"), "S13@2"},
      {"", check_text("capo 1\nrank 0: F1 B1 dispatch-F2 .\n"), "S13@2"},
      {"LeavesAChunkWithOnlyHalfItsActionsToTheCounts", check_te("[1, 2, -2]"), "S15@0"},
      {"OfATableWithTransfersIsAStage",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
                 {.stage_to_rank = {{0, 1, 0}}}),
       "S13@-"},
  });
}

TEST(UnequalMicrobatches, SaysWhatTransformerEngineTakesTheSurplusFor) {
  const Checked last = check_te("[1, 2, 2, -2, -2, -1]");
  EXPECT_EQ(last.findings(), Found{"S14@2"});
  EXPECT_TRUE(last.first().notes.empty()) << "no chunk comes behind the last";
}

TEST(UnequalMicrobatches, StandsHereAndNotThere) {
  expect_findings({
      {"PointsAtTheFirstForwardTooMany", check_te("[1, 1, 2, -2, -1, -1]"), "S14@1"},
      {"PointsAtTheLastForwardWhereSomeLack", check_te("[1, 2, 2, 3, 3, -3, -3, -2, -2, -1]"),
       "S14@0", says("chunk 1 has 1 forward, but the other chunks have 2")},
      {"PointsAtABackwardWhereThereIsNoForwardAtAll", check_te("[1, -1, -2]"), "S14@2"},
      {"PointsNowhereWhereOnlyAWeightGradientIsLeftOfAChunk", check_te("[1, -1, -2.5]"),
       "S14@- S16@2"},
      {"TakesTheLargerNumberWhereTwoAreEquallyUsual", check_te("[1, 2, 2, 2, -2, -2, -2, -1]"),
       "S14@0"},
      {"", check_te("[1, 2, 2, -2, -2, -1]"), "S14@2",
       because("unless the smaller is what TransformerEngine makes of the length of the list")},
      {"HoldsTheOrderToTheDeclaredNumber", check_te("[1, -1]", {.microbatches = 3}), "S14@0",
       says("chunk 1 has 1 forward, but the step is declared to have 3 microbatches")},
      {"", check_te("[1, -1]", {.microbatches = 1})},
      {"", check_te("[1, 1, -1, -1]", {.microbatches = 1}), "S14@1"},
      {"GoesByWhatMostChunksOfAllRanksHave",
       check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 F1 B1 B1\nrank 2: F1 F1 B1 B1\n"), "S14@0"},
      {"", check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 F1 B1 B1\nrank 2: F1 B1\n"), "S14@1",
       says("chunk 1 has 2 forwards on rank 1, but the other chunks have 1")},
      {"HoldsTheReplayOrderToTheSameNumber",
       check_text("capo 1\nmicrobatches 2\nrank 0: F1 F1 B1 B1\nrank 0 replay: F1 B1\n"), "S14@0"},
      {"AcceptsEqualNumbers", check_te("[1, 1, 2, 2, -2, -2, -1, -1]")},
      {"LeavesSurplusAndMissingBackwardsToBackwardCount", check_te("[1, 1, 2, 2, -2, -2, -1]"),
       "S15@1"},
      {"LeavesAnAbsentChunkToMissingChunk", check_te("[2, 2, -2, -2]", {.microbatches = 2}),
       "S13@0"},
      {"LeavesNamedMicrobatchesToTheRulesOfActions", check_text("capo 1\nrank 0: F1.0 F1.0 B1.0\n"),
       "S20@0"},
      {"", check_text("capo 1\nrank 0: F1.0 B1.0 B1.1\n"), "S21@2"},
  });
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

TEST(BackwardCount, SaysNothingOfTransformerEngineInOtherForms) {
  EXPECT_TRUE(at(check_text("capo 1\nrank 0: F1 F2 B1 B1\n"), 3).notes.empty());
}

TEST(BackwardCount, StandsHereAndNotThere) {
  expect_findings({
      {"ProposesNoChunkWhereSeveralLackABackward", check_te("[1, 2, 3, -1, -1, -1]"),
       "S15@1 S15@2 S15@4"},
      {"PointsAtTheForwardThatHasNoBackward", check_te("[1, 1, 2, 2, -2, -2, -1]"), "S15@1"},
      {"SaysThatAChunkHasNoBackwardAtAll", check_te("[1, 2, -2]"), "S15@0",
       says("chunk 1 has 1 forward and no backward")},
      {"PointsAtTheFirstSurplusEntryHoweverTheyAreOrdered", check_te("[-1, -1, 1]"), "S23@0 S15@1"},
      {"", check_te("[1, -1, -1, -1]", {.microbatches = 1}), "S15@2"},
      {"NamesTheRankAndTheOrder", check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 B1 B1\n"), "S15@2",
       says("`B1` at index 2 of rank 1 is a backward of chunk 1 without a forward: the chunk has 1 "
            "forward and 2 backwards")},
      {"", check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 B1\n"), "S15@2",
       says("`B1` at index 2 of rank 0's replay order is a backward of chunk 1 without a forward: "
            "the chunk has 1 forward and 2 backwards")},
      {"AcceptsEqualNumbersInAnyOrder", check_te("[1, 1, 2, -1, 2, -2, -1, -2]")},
      {"LeavesTheForwardsToUnequalMicrobatchesWhereTheBackwardsAreRight",
       check_te("[1, 1, -1, -1, 2, -2, -2]"), "S14@4"},
      {"", check_te("[1, 1, -1]", {.microbatches = 1}), "S14@1"},
      {"LeavesTheOrderOfEntriesToBackwardAhead", check_te("[1, -1, -1, 1]"), "S23@2"},
      {"LeavesNamedMicrobatchesToMissingAndRepeatedAction",
       check_text("capo 1\nrank 0: F1.0 F1.1 B1.0\n"), "S21@1"},
      {"", check_text("capo 1\nrank 0: F1.0 B1.0 B1.0\n"), "S20@1"},
  });
}

TEST(BackwardCount, CountsNoDispatchAndNoCombine) {
  const auto shape = [](const std::string& order) {
    Found findings = check_text("capo 1\nrank 0: " + order + "\n").findings();
    std::erase_if(findings, [](const std::string& finding) { return !finding.starts_with("S"); });
    return findings;
  };
  EXPECT_EQ(shape("F1 dispatch-F1 dispatch-F1 B1 dispatch-B1 combine-B1 combine-B1"), Found{});
  EXPECT_EQ(shape("F1.0 combine-F1.0 B1.0 dispatch-B1.0 dispatch-B1.0"), Found{});
}

}  // namespace
}  // namespace capo
