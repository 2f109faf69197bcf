#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

// Where the second of the two stands; the witness begins with the first.
std::vector<std::size_t> repetitions(const Checked& checked) {
  std::vector<std::size_t> places;
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "S20");
    places.push_back(finding.witness.tasks.at(1).index);
  }
  return places;
}

TEST(RepeatedAction, ShowsBoth) {
  const Checked checked = check_csv("0F0,0B0,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S20@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`0B0` at index 2 runs a second time");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 3}, "the same action again"},
                                                {{4, 3}, "it runs here already"}}));
  EXPECT_EQ(finding.help, (Help{.text = "remove one of the two; is another microbatch meant?"}));
}

TEST(RepeatedAction, ConcernsEveryKindOfComputation) {
  EXPECT_EQ(repetitions(check_csv("0F0,0F0,0B0\n")), std::vector<std::size_t>{1});
  EXPECT_EQ(repetitions(check_csv("0F0,0I0,0I0,0W0\n")), std::vector<std::size_t>{2});
  EXPECT_EQ(repetitions(check_csv("0F0,0I0,0W0,0W0\n")), std::vector<std::size_t>{3});
}

TEST(RepeatedAction, ReportsEveryTimeButTheFirst) {
  EXPECT_EQ(repetitions(check_csv("0F0,0B0,0B0,0B0\n")), (std::vector<std::size_t>{2, 3}));
}

TEST(RepeatedAction, NamesTheRankAndTheOrder) {
  EXPECT_EQ(check_csv("0F0,0B0\n1F0,1B0,1B0\n").result.diagnostics.kept().at(0).message,
            "`1B0` at index 2 of rank 1 runs a second time");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F1.0 B1.0\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`F1.0` at index 1 of rank 0's replay order runs a second time");
}

TEST(RepeatedAction, LooksIntoComposites) {
  EXPECT_EQ(repetitions(check_text("capo 1\nrank 0: F1.0 (B1.0 F1.1) (B1.1 F1.1)\n")),
            std::vector<std::size_t>{2});
}

TEST(RepeatedAction, AcceptsTheSameActionOfOtherMicrobatchesAndChunks) {
  EXPECT_TRUE(check_csv("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n").accepted());
}

TEST(RepeatedAction, AllowsTheSameActionOncePerOrder) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 B1.0\nrank 1: F1.0 B1.0\n")
                  .accepted());
}

TEST(RepeatedAction, DoesNotJudgeTransfersAndActionsOfAWholeStage) {
  EXPECT_TRUE(check_csv("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD\n").accepted());
  const auto twice = check_csv("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_EQ(twice.findings(), Findings{"T01@1"});
}

TEST(RepeatedAction, LeavesAWholeBackwardBesideASplitOneToSplitAndWhole) {
  EXPECT_EQ(check_csv("0F0,0B0,0I0,0W0\n").findings(), Findings{"S22@1"});
}

TEST(RepeatedAction, LeavesCountedOrdersToTheCounts) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 B1\n").findings(), Findings{"S15@2"});
}

TEST(RepeatedAction, LeavesAStageOnTwoRanksToStageTwice) {
  EXPECT_EQ(check_csv("0F0,0B0\n0F0,0B0\n").findings(), Findings{"P01@0"});
}

}  // namespace
}  // namespace capo
