// The rules of core/rules/microbatches.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "core/text/order_text.h"
#include "schedules/catalogue.h"
#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace capo {
namespace {

using Actions = std::vector<std::string>;

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::says;

TEST(MicrobatchOutOfRange, NamesTheRange) {
  const Checked checked = check_csv("0F0,0B0,0F1,0B1,0F7\n", {.microbatches = 2});
  ASSERT_EQ(checked.findings(), Found{"S19@4"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(
      finding.message,
      "`0F7` at index 4 is an action of microbatch 7, but the step has 2 microbatches (0 to 1)");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{16, 3}, ""}}));
}

TEST(MicrobatchOutOfRange, IsTheOnlyRuleToSpeakOfSuchAMicrobatch) {
  // It has no forward, and two backwards that come first.
  EXPECT_EQ(check_csv("0B5,0B5,0F0,0B0\n", {.microbatches = 1}).findings(),
            (Found{"S19@0", "S19@1", "S20@0"}))
      << "a repetition is a fault in any range";
}

TEST(MicrobatchOutOfRange, StandsHereAndNotThere) {
  const std::string table = "0F0,0F1,0B0,0B1\n";
  expect_findings({
      {"BeginsRightBehindTheLast", check_csv(table, {.microbatches = 1}), "S19@1 S19@3"},
      {"", check_csv(table, {.microbatches = 2})},
      {"ConcernsTransfersToo", check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 send-F1.7 B1.0\n"),
       "S19@1"},
      {"", check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.7 B1.0\n"), "S19@1"},
      {"NamesTheRank",
       check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0 F1.1\n"), "S19@2",
       says("`F1.1` at index 2 of rank 1 is an action of microbatch 1, but the step has 1 "
            "microbatch (only 0)")},
      {"JudgesTheReplayOrderToo",
       check_text("capo 1\nmicrobatches 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F1.1 B1.0\n"),
       "S19@1"},
      {"KnowsNoRangeThatNobodyDeclared", check_csv("0F0,0F1,0B0,0B1\n")},
      {"AsksNoActionOfAWholeStage",
       check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n", {.microbatches = 1})},
      {"LeavesCountedMicrobatchesToUnequalMicrobatches",
       check_te("[1, 1, -1, -1]", {.microbatches = 1}), "S14@1"},
  });
}

// The rank and index of the second of the two; the witness begins with the first.
std::vector<std::size_t> repetitions(const Checked& checked) {
  std::vector<std::size_t> places;
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "S20");
    places.push_back(finding.witness.tasks.at(1).index);
  }
  return places;
}

TEST(RepeatedAction, ConcernsEveryKindOfComputation) {
  EXPECT_EQ(repetitions(check_csv("0F0,0F0,0B0\n")), std::vector<std::size_t>{1});
  EXPECT_EQ(repetitions(check_csv("0F0,0I0,0I0,0W0\n")), std::vector<std::size_t>{2});
  EXPECT_EQ(repetitions(check_csv("0F0,0I0,0W0,0W0\n")), std::vector<std::size_t>{3});
}

TEST(RepeatedAction, ReportsEveryTimeButTheFirst) {
  EXPECT_EQ(repetitions(check_csv("0F0,0B0,0B0,0B0\n")), (std::vector<std::size_t>{2, 3}));
}

TEST(RepeatedAction, LooksIntoComposites) {
  EXPECT_EQ(repetitions(check_text("capo 1\nrank 0: F1.0 (B1.0 F1.1) (B1.1 F1.1)\n")),
            std::vector<std::size_t>{2});
}

TEST(RepeatedAction, DoesNotJudgeTransfersAndActionsOfAWholeStage) {
  EXPECT_TRUE(check_csv("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD\n").accepted());
  const auto twice = check_csv("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_EQ(twice.findings(), Found{"T01@1"});
}

TEST(RepeatedAction, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsBoth", check_csv("0F0,0B0,0B0\n"), "S20@1"},
      {"NamesTheRankAndTheOrder", check_csv("0F0,0B0\n1F0,1B0,1B0\n"), "S20@1",
       says("`1B0` at index 2 of rank 1 runs a second time")},
      {"", check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F1.0 B1.0\n"), "S20@0",
       says("`F1.0` at index 1 of rank 0's replay order runs a second time")},
      {"AcceptsTheSameActionOfOtherMicrobatchesAndChunks",
       check_csv("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n")},
      {"AllowsTheSameActionOncePerOrder",
       check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 B1.0\nrank 1: F1.0 B1.0\n")},
      {"LeavesAWholeBackwardBesideASplitOneToSplitAndWhole", check_csv("0F0,0B0,0I0,0W0\n"),
       "S22@1"},
      {"LeavesCountedOrdersToTheCounts", check_text("capo 1\nrank 0: F1 B1 B1\n"), "S15@2"},
      {"LeavesAStageOnTwoRanksToStageTwice", check_csv("0F0,0B0\n0F0,0B0\n"), "P01@0"},
  });
}

// The quoted beginnings of the messages: what is missing.
std::vector<std::string> missing(const Checked& checked) {
  std::vector<std::string> actions;
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "S21");
    actions.push_back(finding.message.substr(1, finding.message.find('`', 1) - 1));
  }
  return actions;
}

TEST(MissingAction, PointsAtTheLastActionOfTheMicrobatch) {
  const Checked checked = check_csv("0F0,0F1,0B0\n");
  ASSERT_EQ(checked.findings(), Found{"S21@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 3}, ""}}));
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{7, 0}, ",0B1"}}));
}

TEST(MissingAction, ItsEditCuresTheOrderInEveryTextForm) {
  for (const std::string text :
       {"0F0,0F1,0B0\n", "\"0F0\",\"0F1\",\"0B0\"\n", "0F0,0I0\n",
        "capo 1\nrank 0: F1.0 F1.1 B1.0\n", "capo 1\nrank 0: F1.0 B1.0 F1.1 I1.1\n",
        R"({"csv": ["0F0,0F1,0B0"]})"}) {
    const Checked checked = check_text(text);
    const Edit& edit = checked.first().help.edits.at(0);
    std::string cured = text;
    EXPECT_TRUE(
        check_text(cured.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted())
        << cured;
  }
}

// The gradient comes from the stage behind: on this rank, its place is known.
TEST(MissingAction, ItsEditIsBehindAllThatItReads) {
  EXPECT_EQ(
      check_csv("0F0,1F0,0F1,1F1,1B0,0B0,1B1\n", {.stage_to_rank = {{0, 0}}}).first().help.edits,
      (std::vector<Edit>{{{27, 0}, ",0B1"}}));
}

TEST(MissingAction, ItsEditIsBehindTheInputHalfThatItReads) {
  const TorchDeclarations declared{.stage_to_rank = {{0, 0}}};
  std::string text = "0F0,1F0,1B0,0B0,0F1,1F1,1I1,1W1\n";
  const Checked checked = check_csv(text, declared);
  ASSERT_EQ(missing(checked), Actions{"0B1"});
  const std::vector<Edit> edits = checked.first().help.edits;
  ASSERT_EQ(edits, (std::vector<Edit>{{{27, 0}, ",0B1"}}));
  EXPECT_TRUE(check_csv(text.insert(27, ",0B1"), declared).accepted());
}

// Behind its forward, ahead of `0F2` of which rank 1 makes the gradient, the ranks would wait for
// each other.
TEST(MissingAction, OffersNoEditWhereAnotherRankHandsTheGradientOn) {
  EXPECT_EQ(missing(check_csv("0F0,0F1,0F2,0B0,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n")), Actions{"0B1"});
}

TEST(MissingAction, OffersNoEditWhereNobodyMakesTheGradient) {
  const Checked checked = check_csv("0F0,1F0,0F1,1F1,1B0,0B0\n", {.stage_to_rank = {{0, 0}}});
  ASSERT_EQ(missing(checked), (Actions{"0B1", "1B1"}));
  EXPECT_TRUE(checked.first().help.edits.empty());
  EXPECT_FALSE(checked.result.diagnostics.kept().at(1).help.edits.empty());
}

// A sound schedule loses each of its backwards and weight gradients in turn.
TEST(MissingAction, ItsEditsAlwaysCure) {
  std::size_t edits = 0;
  for (const char* name : {"gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "zbv-1p", "v-half",
                           "hanayo", "chimera", "looped-bfs"}) {
    const Schedule sound =
        *schedules::schedule_named({.name = name, .ranks = 4, .microbatches = 8});
    for (std::size_t r = 0; r < sound.ranks.size(); ++r) {
      for (std::size_t i = 0; i < sound.ranks[r].order.size(); ++i) {
        Schedule broken = sound;
        auto& order = broken.ranks[r].order;
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
        std::string text = print_order_file(broken);
        const Checked checked = check_text(text);
        ASSERT_EQ(missing(checked).size(), 1U) << text;
        for (const Edit& edit : checked.first().help.edits) {
          ++edits;
          text.replace(edit.span.offset, edit.span.length, edit.replacement);
          EXPECT_TRUE(check_text(text).accepted()) << name << "\n" << text;
        }
      }
    }
  }
  EXPECT_GT(edits, 100U);
}

TEST(MissingAction, OffersNoEditInsideAComposite) {
  const Checked checked = check_csv("0F0,(0F1;0B0)OVERLAP_F_B\n");
  EXPECT_EQ(missing(checked), Actions{"0B1"});
  EXPECT_TRUE(checked.first().help.edits.empty());
}

TEST(MissingAction, FindsAForwardToo) {
  const Checked checked = check_csv("0F0,0B0,0B1\n");
  ASSERT_EQ(checked.findings(), Found{"S21@2"});
  EXPECT_TRUE(checked.first().help.edits.empty()) << "it belongs further ahead";
}

TEST(MissingAction, UsesTheWordThatTheTableHasForAnInputHalf) {
  EXPECT_EQ(missing(check_csv("0F0,0I0,0W0,0F1,0W1\n")), Actions{"0I1"});
  EXPECT_EQ(missing(check_text("capo 1\nrank 0: F1.0 B1.0 W1.0 F1.1 W1.1\n")), Actions{"B1.1"});
}

TEST(MissingAction, AsksForTheWeightGradientOfASplitBackward) {
  EXPECT_EQ(missing(check_csv("0F0,0I0\n")), Actions{"0W0"});
  EXPECT_EQ(missing(check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0\n")), Actions{"W1.0"});
  EXPECT_TRUE(check_csv("0F0,0I0,0W0\n").accepted());
}

TEST(MissingAction, InAMixedChunkEachMicrobatchMayDoEither) {
  EXPECT_TRUE(check_csv("0F0,0B0,0F1,0I1,0W1\n").accepted());
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F1,0I1\n")), Actions{"0W1"});
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F1,0W1\n")), Actions{"0I1"});
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F1,0I1,0W1,0F2\n")), Actions{"0B2"});
}

TEST(MissingAction, FindsMicrobatchesThatDoNotOccurAtAll) {
  EXPECT_EQ(missing(check_csv("0F1,0B1\n")), (Actions{"0F0", "0B0"}));
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F2,0B2\n")), (Actions{"0F1", "0B1"}));
  EXPECT_EQ(missing(check_csv("0F0,0B0\n", {.microbatches = 2})), (Actions{"0F1", "0B1"}));
  EXPECT_EQ(missing(check_csv("0F0,0I0,0W0\n", {.microbatches = 2})),
            (Actions{"0F1", "0I1", "0W1"}));
}

TEST(MissingAction, HoldsEveryRankToTheLargestMicrobatchOfAny) {
  const Checked checked = check_csv("0F0,0F1,0B0,0B1\n1F0,1B0\n");
  EXPECT_EQ(missing(checked), (Actions{"1F1", "1B1"}));
  EXPECT_EQ(checked.first().message,
            "`1F1` is missing on rank 1: stage 1 does not run microbatch 1 forward");
}

TEST(MissingAction, JudgesTheReplayOrderByItself) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0\n");
  EXPECT_EQ(missing(checked), Actions{"B1.0"});
  EXPECT_EQ(
      checked.first().message,
      "`B1.0` is missing in rank 0's replay order: chunk 1 does not run microbatch 0 backward");
}

TEST(MissingAction, CountsWhatItDoesNotDescribe) {
  const Checked checked = check_csv("0F0,0B0\n", {.microbatches = 1'000'001});
  EXPECT_EQ(checked.result.diagnostics.errors(), 2'000'000u);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), Diagnostics::kDefaultLimit);
}

TEST(MissingAction, StandsHereAndNotThere) {
  expect_findings({
      {"AcceptsACompleteOrder", check_csv("0F0,0F1,0B0,0B1\n")},
      {"LeavesAnAbsentStageToMissingChunk", check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}}),
       "S13@-"},
      {"LeavesMicrobatchesOutOfRangeAlone", check_csv("0F0,0B0,0F3\n", {.microbatches = 1}),
       "S19@2"},
      {"LeavesCountedMicrobatchesToTheCounts", check_te("[1, 1, -1]", {.microbatches = 2}),
       "S15@1"},
  });
}

TEST(SplitAndWhole, PointsAtTheLaterOfTheTwoWays) {
  const Checked checked = check_csv("0F0,0I0,0W0,0B0\n");
  ASSERT_EQ(checked.findings(), Found{"S22@1"});
  EXPECT_EQ(checked.first().labels.at(0).span, (Span{12, 3}));
}

TEST(SplitAndWhole, NamesTheMicrobatchAndTheRank) {
  const Checked checked = check_text(
      "capo 1\nmixed 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.0 B1.0 F1.1 I1.1 W1.1 B1.1\n");
  ASSERT_EQ(checked.findings(), Found{"S22@3"});
  EXPECT_EQ(checked.first().witness.tasks.at(0).rank, 1);
}

TEST(SplitAndWhole, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsBoth", check_csv("0F0,0B0,0I0,0W0\n"), "S22@1"},
      {"FindsAWeightHalfAlone", check_csv("0F0,0B0,0W0\n"), "S22@1"},
      {"LetsEachMicrobatchChoose", check_csv("0F0,0F1,0B0,0I1,0W1\n")},
      {"JudgesTheReplayOrderToo",
       check_text("capo 1\nmixed 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 B1.0 I1.0 W1.0\n"),
       "S22@1"},
      {"LeavesAWeightGradientThatIsNotDeclaredToWeightUndeclared",
       check_text("capo 1\ndelayed none\nrank 0: F1.0 B1.0 W1.0\n"), "S17@2"},
      {"HasNothingToSayWhereEveryBackwardIsAnInputHalf",
       check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 W1.0\n")},
  });
}

}  // namespace
}  // namespace capo
