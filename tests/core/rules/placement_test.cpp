// The rules of core/rules/placement.cpp: where each finding stands, and where there is none.
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

TEST(StageTwice, AcceptsEveryStageOnARankOfItsOwn) {
  EXPECT_TRUE(check_csv("0F0,0B0\n1F0,1B0\n").accepted());
  for (const std::string placement : {"chain", "loop", "v"}) {
    EXPECT_TRUE(check_text("capo 1\nplacement " + placement +
                           "\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n")
                    .accepted())
        << placement;
  }
}

TEST(StageTwice, StandsHereAndNotThere) {
  const std::string table = "0F0,1F0,1B0,0B0\n1F0,1B0\n";
  expect_findings({
      {"PointsAtTheSecondRank", check_csv("0F0,0B0\n0F0,0B0\n"), "P01@0"},
      {"BlamesTheRankThatTheStageIsNotDeclaredFor", check_csv(table, {.stage_to_rank = {{0, 1}}}),
       "P01@1"},
      {"", check_csv(table), "P01@0", because("undeclared, the higher rank")},
      {"ReportsEveryRankButOne", check_csv("0F0,0B0\n0F0,0B0\n0F0,0B0\n"), "P01@0 P01@0"},
      {"ReadsACustomPlacement",
       check_text(
           "capo 1\nplacement custom\nrank 0 stages 0 1\nrank 1 stages 2 1\nrank 0: F1 F2 B2 B1\n"
           "rank 1: F1 F2 B2 B1\n"),
       "P01@1"},
      {"TellsTwoChunksOfOneRankFromTwoRanks",
       check_text("capo 1\nplacement custom\nrank 0 stages 0 0\nrank 0: F1 F2 B2 B1\n"), "P01@1"},
      {"ReportsARankOnceThoughItHasTwoOrders",
       check_text("capo 1\nplacement custom\nrank 0 stages 0\nrank 1 stages 0\nrank 0: F1 B1\n"
                  "rank 1: F1 B1\nrank 1 replay: F1 B1\n"),
       "P01@0"},
      {"KnowsNoStagesWithoutAPlacement", check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 B1\n")},
  });
}

TEST(StageNowhere, NamesTheStageAndHowManyThereAre) {
  const Checked checked = check_csv("1F0,1B0\n");
  ASSERT_EQ(checked.findings(), Found{"P02@-"});
  const Diagnostic& finding = checked.first();
  EXPECT_TRUE(finding.labels.empty()) << "it stands nowhere";
}

TEST(StageNowhere, StandsHereAndNotThere) {
  expect_findings({
      {"ReportsEveryGap", check_csv("0F0,0B0\n4F0,2F0,2B0,4B0\n"), "P02@- P02@-",
       because("1 and 3")},
      {"GoesByTheDeclaredNumber", check_csv("0F0,0B0\n", {.stages = 2}), "P02@-"},
      {"", check_csv("0F0,0B0\n", {.stages = 1})},
      {"", check_text("capo 1\nplacement loop\nstages 3\nrank 0: F1 B1\nrank 1: F1 B1\n"), "P02@-"},
      {"ReadsACustomPlacement",
       check_text("capo 1\nplacement custom\nrank 0 stages 0\nrank 1 stages 2\nrank 0: F1 "
                  "B1\nrank 1: F1 B1\n"),
       "P02@-"},
      {"FindsTheGapThatRanksOfUnequalSizeLeaveInALoop",
       check_text("capo 1\nplacement loop\nrank 0: F1 B1\nrank 1: F1 F2 B2 B1\n"), "P02@-"},
      {"", check_text("capo 1\nplacement loop\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n")},
      {"LeavesAStageThatItsRankNeverRunsToMissingChunk",
       check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}}), "S13@-"},
      {"LeavesAStageBeyondTheDeclaredNumberToStageUnknown",
       check_csv("0F0,7F0,7B0,0B0\n", {.stages = 1}), "P03@1"},
      {"KnowsNoStagesWithoutAPlacement", check_te("[1, -1]")},
  });
}

TEST(StageUnknown, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheStagesThatThereAre", check_csv("0F0,0B0\n1F0,2F0,2B0,1B0\n", {.stages = 2}),
       "P03@1", labels("12+3")},
      {"BeginsRightBehindTheLast", check_csv("0F0,1F0,1B0,0B0\n", {.stages = 2})},
      {"", check_csv("0F0,1F0,1B0,0B0\n", {.stages = 1}), "P03@1"},
      {"LeavesNothingForStageTwiceToSay", check_csv("0F0,0B0,1F0,1B0\n1F0,1B0\n", {.stages = 1}),
       "P03@2 P03@0"},
      {"TakesTheLengthOfADeclaredPlacementForTheNumber",
       check_csv("0F0,1F0,1B0,0B0\n", {.stage_to_rank = {{0}}}), "P03@1"},
      {"ReportsAStageOncePerRankThoughItHasTwoOrders",
       check_text(
           "capo 1\nplacement custom\nstages 1\nrank 0 stages 0\nrank 1 stages 1\nrank 0: F1 B1\n"
           "rank 1: F1 B1\nrank 1 replay: F1 B1\n"),
       "P03@0"},
      {"HoldsADerivedPlacementToTheDeclaredNumber",
       check_text("capo 1\nplacement loop\nstages 3\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n"),
       "P03@1"},
      {"NamesAStageOfWhichNothingRuns",
       check_text("capo 1\nplacement custom\nstages 1\nrank 0 stages 0,1\nrank 0: F1 B1\n"),
       "P03@- S13@-", because("nothing that stands there is of chunk 2")},
      {"KnowsNoNumberThatNobodyDeclared", check_csv("0F0,1F0,1B0,0B0\n")},
      {"IsTheOnlyRuleToSpeakOfThePlaceOfSuchAStage",
       check_csv("0F0,0B0,5F0,5B0\n5F0,5B0\n", {.stages = 1}), "P03@2 P03@0",
       because("nor of stages 1 to 4, nor of the two ranks")},
  });
}

}  // namespace
}  // namespace capo
