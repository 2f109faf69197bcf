#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(MissingChunk, PointsAtTheLargestChunkThatIsNamed) {
  const Checked checked = check_te("[1, 3, -3, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S13@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "chunk 2 never runs: the rank has 3 chunks");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 1}, "the largest chunk is named here"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "number the chunks without gaps, or add chunk 2 for every microbatch"}));
}

TEST(MissingChunk, SaysThatADeclaredChunkIsMissingAndPointsNowhere) {
  const Checked checked =
      check_te("[1, -1]", {.layers = {.form = Layers::Form::List, .values = {1, 1}}});
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "chunk 2 never runs: the rank is declared to have 2 chunks");
  EXPECT_TRUE(finding.labels.empty());
  EXPECT_EQ(finding.help,
            (Help{.text = "add a forward and a backward of chunk 2 for every microbatch, or "
                          "declare fewer chunks"}));
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
  const Checked checked = check_text("capo 1\nchunks 2\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 2 never runs on rank 1: the rank is declared to have 2 chunks");
}

TEST(MissingChunk, JudgesTheReplayOrderByItself) {
  const Checked checked =
      check_text("capo 1\nchunks 2\nmicrobatches 1\nrank 0: F1 F2 B2 B1\nrank 0 replay: F1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 2 never runs in rank 0's replay order: the rank is declared to have 2 chunks");
}

TEST(MissingChunk, SpeaksOfStagesWhereATableDoes) {
  const Checked checked = check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}});
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_TRUE(checked.result.diagnostics.kept().front().message.starts_with("stage 1 never runs"));
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
  EXPECT_TRUE(checked.result.diagnostics.kept().front().labels.empty());
}

TEST(MissingChunk, OfATableWithTransfersIsAStage) {
  const Checked checked = check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
                                    {.stage_to_rank = {{0, 1, 0}}});
  ASSERT_EQ(checked.findings(), Findings{"S13@-"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "stage 2 never runs on rank 0: the rank is declared to have 2 stages");
}

}  // namespace
}  // namespace capo
