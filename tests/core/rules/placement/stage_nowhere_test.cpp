#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(StageNowhere, NamesTheStageAndHowManyThereAre) {
  const Checked checked = check_csv("1F0,1B0\n");
  ASSERT_EQ(checked.findings(), Findings{"P02@-"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "stage 0 is on no rank, but there are 2 stages");
  EXPECT_TRUE(finding.labels.empty()) << "it stands nowhere";
  EXPECT_EQ(finding.help,
            (Help{.text = "give its actions to a rank, or number the stages without gaps"}));
  EXPECT_EQ(finding.family, Family::Placement);
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

}  // namespace
}  // namespace capo
