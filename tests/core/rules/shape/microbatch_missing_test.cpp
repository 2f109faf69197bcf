#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(MicrobatchMissing, NamesTheCellAndItsPlace) {
  const Checked checked = check_csv("0F0,0F,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S07@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`0F` at index 1 does not say its microbatch");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 2}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "add the number of the microbatch, counted from 0"}));
}

TEST(MicrobatchMissing, ConcernsEveryActionOfAMicrobatch) {
  for (const std::string type : {"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B"}) {
    EXPECT_EQ(check_csv("0F0,0B0,0" + type + "\n").findings(), Findings{"S07@2"}) << type;
  }
}

TEST(MicrobatchMissing, AllowsActionsOfAWholeStage) {
  EXPECT_TRUE(check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n").accepted());
}

TEST(MicrobatchMissing, SaysOnWhichRank) {
  const Checked checked = check_csv("0F0,0B0\n1F0,1B\n");
  ASSERT_EQ(checked.findings(), Findings{"S07@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`1B` at index 1 of rank 1 does not say its microbatch");
}

TEST(MicrobatchMissing, LooksIntoComposites) {
  EXPECT_EQ(check_csv("0F0,(0F;0B0)OVERLAP_F_B\n").findings(), Findings{"S07@1"});
  EXPECT_EQ(check_csv("0F0,(0F;0B)OVERLAP_F_B\n").findings(), (Findings{"S07@1", "S07@1"}));
}

TEST(MicrobatchMissing, AcceptsTheNumber) {
  EXPECT_TRUE(check_csv("0F0,0F1,0B0,0B1\n").accepted());
}

TEST(MicrobatchMissing, HasNothingToSayWhereMicrobatchesAreCounted) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1 B1\n").accepted());
}

TEST(MicrobatchMissing, LeavesACellThatPyTorchReadsInPartToDroppedText) {
  EXPECT_EQ(check_csv("0F0,0FOO,0B0\n").findings(), Findings{"S08@1"});
  EXPECT_EQ(check_csv("0F0,0BW0\n").findings(), Findings{"S08@1"});
}

TEST(MicrobatchMissing, LeavesAMixtureInAnOrderFileToTheReader) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1\n").findings(), Findings{"I01@-"});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 dispatch-F1 B1.0\n").findings(), Findings{"I01@-"});
}

}  // namespace
}  // namespace capo
