#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(DroppedText, SaysWhatPyTorchMakesOfTheCell) {
  const Checked checked = check_csv("0F0,0F1.5,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S08@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`0F1.5` at index 1 of rank 0 is read by PyTorch as `0F1`, and the rest is dropped");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 5}, ""}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "one action a cell, `<stage><type><microbatch>`; the members of a "
                          "composite are separated by `;`"}));
  EXPECT_EQ(finding.witness.tasks.at(0).action, "0F1") << "a program learns what torch reads";
}

TEST(DroppedText, FindsWhateverStandsBehindAnAction) {
  for (const std::string cell : {"0F0x", "0F0 1B0", "0F0;1B0", "0F0)", "0F0.0", "0F-1", "0FOO",
                                 "0BW0", "0F0 # the first", "0REDUCE_GRADS"}) {
    EXPECT_EQ(check_csv(cell + ",0F0,0B0\n").findings(), Findings{"S08@0"}) << cell;
  }
}

TEST(DroppedText, FindsItInAMemberOfAComposite) {
  EXPECT_EQ(check_csv("0F0,(0F1x;0B0)OVERLAP_F_B,0B1\n").findings(), Findings{"S08@1"});
}

TEST(DroppedText, CountsCellsPerRank) {
  EXPECT_EQ(check_csv("0F0,0B0\n1F0,1B0x\n").findings(), Findings{"S08@1"});
  EXPECT_EQ(
      check_csv("0F0,0B0\n1F0,1B0x\n").result.diagnostics.kept().at(0).witness.tasks.at(0).rank, 1);
}

TEST(DroppedText, PointsIntoTheRowOfAJsonTable) {
  const Checked checked = check_text(R"({"csv": ["0F0,0F1x,0B0"]})");
  ASSERT_EQ(checked.findings(), Findings{"S08@1"});
  EXPECT_EQ(checked.input.source.slice(checked.result.diagnostics.kept().at(0).labels.at(0).span),
            "0F1x");
}

TEST(DroppedText, AcceptsBlanksAroundACellAndLeadingZeros) {
  EXPECT_TRUE(check_csv(" 0F0 ,\t0B0\n").accepted());
  EXPECT_TRUE(check_csv("00F00,0B000\n").accepted());
  EXPECT_TRUE(check_csv("0F0,( 0F1 ; 0B0 )OVERLAP_F_B,0B1\n").accepted());
}

TEST(DroppedText, LeavesACellThatPyTorchRefusesToTheReader) {
  EXPECT_EQ(check_csv("0F0,x0B0\n").findings(), Findings{"I01@-"});
  EXPECT_EQ(check_csv("0F0,0f0\n").findings(), Findings{"I01@-"});
}

TEST(DroppedText, LeavesASurplusNumberToSurplusMicrobatch) {
  EXPECT_EQ(check_csv("0F0,0B0,0REDUCE_GRAD7\n").findings(), Findings{"S10@2"});
}

TEST(DroppedText, IsOneFindingOfACompositeAndOneOfEachRank) {
  EXPECT_EQ(check_csv("0F0,(0F1.5;0B0.5)OVERLAP_F_B,0B1\n").findings(), Findings{"S08@1"});
  EXPECT_EQ(check_csv("0F0.5,0B0\n1F0.5,1B0\n").findings(), (Findings{"S08@0", "S08@0"}));
}

TEST(DroppedText, IsOneFindingOfEachCellThatHasAny) {
  EXPECT_EQ(check_csv("0F0.5,0B0.5\n").findings(), (Findings{"S08@0", "S08@1"}));
}

}  // namespace
}  // namespace capo
