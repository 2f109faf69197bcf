#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Checked check_chain(const std::string& list) {
  return check_in({.topology = Topology::Chain}, list, {.form = TextForm::TeList});
}

TEST(StageOrder, ShowsTheReaderAndWhatItReads) {
  const Checked checked = check_chain("[2, 1, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"D03@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`2` at index 0 runs before `1` at index 1, whose output it reads");
  EXPECT_EQ(
      finding.labels,
      (std::vector<Label>{{{1, 1}, ""}, {{4, 1}, "stage 0 runs forward for microbatch 0 here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `2` behind `1` at index 1"}));
  EXPECT_EQ(finding.family, Family::Dependencies);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Path);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 0, "2", "F(c2,m0)"}, {0, 1, "1", "F(c1,m0)"}}));
}

TEST(StageOrder, ConcernsGradientsTheOtherWayRound) {
  const Checked checked = check_chain("[1, 2, -1, -2]");
  ASSERT_EQ(checked.findings(), Findings{"D03@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`-1` at index 2 runs before `-2` at index 3, whose gradient it reads");
  EXPECT_EQ(finding.labels.at(1).text, "stage 1 runs backward for microbatch 0 here");
}

TEST(StageOrder, ConcernsTheInputHalfAndNotTheWeights) {
  EXPECT_EQ(check_csv("0F0,1F0,0I0,1I0,1W0,0W0\n").findings(), Findings{"D03@2"});
  EXPECT_TRUE(check_csv("0F0,1F0,1I0,0I0,0W0,1W0\n").accepted());
  EXPECT_EQ(check_chain("[1, 2, -1, -1.5, -2, -2.5]").findings(), Findings{"D03@2"});
}

TEST(StageOrder, ReportsEachMicrobatch) {
  EXPECT_EQ(check_chain("[1, 1, 2, 2, -1, -1, -2, -2]").findings(), (Findings{"D03@4", "D03@5"}));
}

TEST(StageOrder, GoesByTheMicrobatch) {
  EXPECT_TRUE(check_csv("0F0,0F1,1F1,1F0,1B0,0B0,1B1,0B1\n").accepted());
  EXPECT_EQ(check_csv("0F0,1F1,0F1,1F0,1B0,0B0,1B1,0B1\n").findings(), Findings{"D03@1"});
}

TEST(StageOrder, GoesByThePlacement) {
  EXPECT_EQ(check_text("capo 1\nplacement v\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                       "rank 1: F2.0 F1.0 B2.0 B1.0\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`F2.0` at index 0 of rank 1 runs before `F1.0` at index 1, whose output it reads");
  const std::string custom = "capo 1\nplacement custom\nrank 0 stages 1,0\nrank 0: ";
  EXPECT_TRUE(check_text(custom + "F2.0 F1.0 B1.0 B2.0\n").accepted());
  EXPECT_EQ(check_text(custom + "F1.0 F2.0 B1.0 B2.0\n").findings(), Findings{"D03@0"});
}

TEST(StageOrder, AsksNothingOfChunksThatAreNotWired) {
  EXPECT_TRUE(check_te("[2, 1, -1, -2]").accepted());
}

TEST(StageOrder, MembersOfACompositeCannotReadEachOther) {
  const Checked checked = check_csv("0F0,(0F1;1F0)OVERLAP_F_B,(1F1;1B0)OVERLAP_F_B,0B0,1B1,0B1\n");
  EXPECT_TRUE(checked.accepted());
  EXPECT_EQ(check_csv("0F0,(1F0;1B0)OVERLAP_F_B,0B0\n").findings(), Findings{"D01@1"})
      << "forward and backward of one stage are backward-before-forward's";
  const Checked together = check_csv("(0F0;1F0)OVERLAP_F_B,1B0,0B0\n");
  ASSERT_EQ(together.findings(), Findings{"D03@0"});
  const Diagnostic& finding = together.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`1F0` at index 0 runs together with `0F0`, whose output it reads");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{0, 20}, ""}})) << "both are one cell";
  EXPECT_EQ(finding.help.text, "take `1F0` out of the composite and put it behind `0F0`");
}

TEST(StageOrder, MembersOfACompositeHavePlacesInAnOrderFile) {
  const Checked checked = check_text("capo 1\nplacement chain\nrank 0: F1.0 F2.0 (B2.0 B1.0)\n");
  ASSERT_EQ(checked.findings(), Findings{"D03@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`B1.0` at index 2 runs together with `B2.0`, whose gradient it reads");
  EXPECT_EQ(finding.labels.size(), 2u);
}

TEST(StageOrder, ACompositeIsBeforeWhatOneOfItsMembersReads) {
  EXPECT_EQ(check_csv("0F0,(1F0;0F1)OVERLAP_F_B,(0B0;1F1)OVERLAP_F_B,1B0,1B1,0B1\n").findings(),
            Findings{"D03@2"});
}

TEST(StageOrder, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                       "rank 0 replay: F1.0 F2.0 B1.0 B2.0\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`B1.0` at index 2 of rank 0's replay order runs before `B2.0` at index 3, whose "
            "gradient it reads");
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F2.0 F1.0 B2.0 B1.0\n"
                       "rank 1: F1.0 B1.0\nrank 1 replay: F1.0 B1.0\n")
                .findings(),
            Findings{"D03@0"})
      << "the replay of rank 1 says nothing new of rank 0";
}

TEST(StageOrder, LeavesWhatGoesByWayOfAnotherRankToDependencyCycle) {
  EXPECT_EQ(check_csv("2F0,0F0,2B0,0B0\n1F0,1B0\n").findings(), Findings{"D04@0"});
}

TEST(StageOrder, WaitsForTheRulesOfOneOrder) {
  const Checked checked = check_chain("[2, 1, -2]");
  EXPECT_EQ(checked.findings().front().substr(0, 1), "S");
  EXPECT_EQ(checked.result.skipped.front(), Pass::Stages);
}

}  // namespace
}  // namespace capo
