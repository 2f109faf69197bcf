// The rules of core/rules/placement.cpp: where each finding stands, and where there is none.
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

TEST(StageTwice, PointsAtTheSecondRank) {
  const Checked checked = check_csv("0F0,0B0\n0F0,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"P01@0"});
}

TEST(StageTwice, BlamesTheRankThatTheStageIsNotDeclaredFor) {
  const std::string table = "0F0,1F0,1B0,0B0\n1F0,1B0\n";
  EXPECT_EQ(check_csv(table, {.stage_to_rank = {{0, 1}}}).findings(), Findings{"P01@1"});
  EXPECT_EQ(check_csv(table).findings(), Findings{"P01@0"}) << "undeclared, the higher rank";
}

TEST(StageTwice, ReportsEveryRankButOne) {
  EXPECT_EQ(check_csv("0F0,0B0\n0F0,0B0\n0F0,0B0\n").findings(), (Findings{"P01@0", "P01@0"}));
}

TEST(StageTwice, ReadsACustomPlacement) {
  EXPECT_EQ(
      check_text(
          "capo 1\nplacement custom\nrank 0 stages 0 1\nrank 1 stages 2 1\nrank 0: F1 F2 B2 B1\n"
          "rank 1: F1 F2 B2 B1\n")
          .findings(),
      Findings{"P01@1"});
}

TEST(StageTwice, TellsTwoChunksOfOneRankFromTwoRanks) {
  const Checked checked =
      check_text("capo 1\nplacement custom\nrank 0 stages 0 0\nrank 0: F1 F2 B2 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"P01@1"});
}

TEST(StageTwice, ReportsARankOnceThoughItHasTwoOrders) {
  EXPECT_EQ(check_text("capo 1\nplacement custom\nrank 0 stages 0\nrank 1 stages 0\nrank 0: F1 B1\n"
                       "rank 1: F1 B1\nrank 1 replay: F1 B1\n")
                .findings(),
            Findings{"P01@0"});
}

TEST(StageTwice, AcceptsEveryStageOnARankOfItsOwn) {
  EXPECT_TRUE(check_csv("0F0,0B0\n1F0,1B0\n").accepted());
  for (const std::string placement : {"chain", "loop", "v"}) {
    EXPECT_TRUE(check_text("capo 1\nplacement " + placement +
                           "\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n")
                    .accepted())
        << placement;
  }
}

TEST(StageTwice, KnowsNoStagesWithoutAPlacement) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 B1\n").accepted());
}

TEST(StageNowhere, NamesTheStageAndHowManyThereAre) {
  const Checked checked = check_csv("1F0,1B0\n");
  ASSERT_EQ(checked.findings(), Findings{"P02@-"});
  const Diagnostic& finding = checked.first();
  EXPECT_TRUE(finding.labels.empty()) << "it stands nowhere";
}

TEST(StageNowhere, ReportsEveryGap) {
  EXPECT_EQ(check_csv("0F0,0B0\n4F0,2F0,2B0,4B0\n").findings(), (Findings{"P02@-", "P02@-"}))
      << "1 and 3";
}

TEST(StageNowhere, GoesByTheDeclaredNumber) {
  EXPECT_EQ(check_csv("0F0,0B0\n", {.stages = 2}).findings(), Findings{"P02@-"});
  EXPECT_TRUE(check_csv("0F0,0B0\n", {.stages = 1}).accepted());
  EXPECT_EQ(
      check_text("capo 1\nplacement loop\nstages 3\nrank 0: F1 B1\nrank 1: F1 B1\n").findings(),
      Findings{"P02@-"});
}

TEST(StageNowhere, ReadsACustomPlacement) {
  EXPECT_EQ(check_text("capo 1\nplacement custom\nrank 0 stages 0\nrank 1 stages 2\nrank 0: F1 "
                       "B1\nrank 1: F1 B1\n")
                .findings(),
            Findings{"P02@-"});
}

TEST(StageNowhere, FindsTheGapThatRanksOfUnequalSizeLeaveInALoop) {
  EXPECT_EQ(check_text("capo 1\nplacement loop\nrank 0: F1 B1\nrank 1: F1 F2 B2 B1\n").findings(),
            Findings{"P02@-"});
  EXPECT_TRUE(
      check_text("capo 1\nplacement loop\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n").accepted());
}

TEST(StageNowhere, LeavesAStageThatItsRankNeverRunsToMissingChunk) {
  EXPECT_EQ(check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}}).findings(), Findings{"S13@-"});
}

TEST(StageNowhere, LeavesAStageBeyondTheDeclaredNumberToStageUnknown) {
  EXPECT_EQ(check_csv("0F0,7F0,7B0,0B0\n", {.stages = 1}).findings(), Findings{"P03@1"});
}

TEST(StageNowhere, KnowsNoStagesWithoutAPlacement) {
  EXPECT_TRUE(check_te("[1, -1]").accepted());
}

TEST(StageUnknown, NamesTheStagesThatThereAre) {
  const Checked checked = check_csv("0F0,0B0\n1F0,2F0,2B0,1B0\n", {.stages = 2});
  ASSERT_EQ(checked.findings(), Findings{"P03@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{12, 3}, ""}}));
}

TEST(StageUnknown, BeginsRightBehindTheLast) {
  EXPECT_TRUE(check_csv("0F0,1F0,1B0,0B0\n", {.stages = 2}).accepted());
  EXPECT_EQ(check_csv("0F0,1F0,1B0,0B0\n", {.stages = 1}).findings(), Findings{"P03@1"});
}

TEST(StageUnknown, LeavesNothingForStageTwiceToSay) {
  EXPECT_EQ(check_csv("0F0,0B0,1F0,1B0\n1F0,1B0\n", {.stages = 1}).findings(),
            (Findings{"P03@2", "P03@0"}));
}

TEST(StageUnknown, TakesTheLengthOfADeclaredPlacementForTheNumber) {
  EXPECT_EQ(check_csv("0F0,1F0,1B0,0B0\n", {.stage_to_rank = {{0}}}).findings(), Findings{"P03@1"});
}

TEST(StageUnknown, ReportsAStageOncePerRankThoughItHasTwoOrders) {
  EXPECT_EQ(
      check_text(
          "capo 1\nplacement custom\nstages 1\nrank 0 stages 0\nrank 1 stages 1\nrank 0: F1 B1\n"
          "rank 1: F1 B1\nrank 1 replay: F1 B1\n")
          .findings(),
      Findings{"P03@0"});
}

TEST(StageUnknown, HoldsADerivedPlacementToTheDeclaredNumber) {
  EXPECT_EQ(
      check_text("capo 1\nplacement loop\nstages 3\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n")
          .findings(),
      Findings{"P03@1"});
}

TEST(StageUnknown, KnowsNoNumberThatNobodyDeclared) {
  EXPECT_TRUE(check_csv("0F0,1F0,1B0,0B0\n").accepted());
}

TEST(StageUnknown, IsTheOnlyRuleToSpeakOfThePlaceOfSuchAStage) {
  EXPECT_EQ(check_csv("0F0,0B0,5F0,5B0\n5F0,5B0\n", {.stages = 1}).findings(),
            (Findings{"P03@2", "P03@0"}))
      << "nor of stages 1 to 4, nor of the two ranks";
}

}  // namespace
}  // namespace capo
