#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(StageUnknown, NamesTheStagesThatThereAre) {
  const Checked checked = check_csv("0F0,0B0\n1F0,2F0,2B0,1B0\n", {.stages = 2});
  ASSERT_EQ(checked.findings(), Findings{"P03@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "rank 1 runs stage 2, but the model has 2 stages (0 to 1)");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{12, 3}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "correct the stage, or the number that is declared"}));
  EXPECT_EQ(finding.family, Family::Placement);
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
