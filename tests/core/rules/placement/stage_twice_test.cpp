#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(StageTwice, PointsAtTheSecondRank) {
  const Checked checked = check_csv("0F0,0B0\n0F0,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"P01@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "stage 0 is on rank 0 and on rank 1");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 3}, "run by rank 1 here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move its actions to rank 0"}));
  EXPECT_EQ(finding.family, Family::Placement);
}

TEST(StageTwice, BlamesTheRankThatTheStageIsNotDeclaredFor) {
  const std::string table = "0F0,1F0,1B0,0B0\n1F0,1B0\n";
  const Checked declared = check_csv(table, {.stage_to_rank = {{0, 1}}});
  ASSERT_EQ(declared.findings(), Findings{"P01@1"});
  EXPECT_EQ(declared.result.diagnostics.kept().front().message,
            "stage 1 is on rank 1 and on rank 0");
  EXPECT_EQ(declared.result.diagnostics.kept().front().help.text, "move its actions to rank 1");
  EXPECT_EQ(check_csv(table).findings(), Findings{"P01@0"}) << "undeclared, the higher rank";
}

TEST(StageTwice, ReportsEveryRankButOne) {
  EXPECT_EQ(check_csv("0F0,0B0\n0F0,0B0\n0F0,0B0\n").findings(), (Findings{"P01@0", "P01@0"}));
}

TEST(StageTwice, ReadsACustomPlacement) {
  const Checked checked = check_text(
      "capo 1\nplacement custom\nrank 0 stages 0 1\nrank 1 stages 2 1\nrank 0: F1 F2 B2 B1\n"
      "rank 1: F1 F2 B2 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"P01@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "stage 1 is on rank 0 and on rank 1");
}

TEST(StageTwice, TellsTwoChunksOfOneRankFromTwoRanks) {
  const Checked checked =
      check_text("capo 1\nplacement custom\nrank 0 stages 0 0\nrank 0: F1 F2 B2 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"P01@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "stage 0 is both chunk 1 and chunk 2 of rank 0");
  EXPECT_EQ(checked.result.diagnostics.kept().front().help,
            (Help{.text = "give each chunk a stage of its own"}));
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

}  // namespace
}  // namespace capo
