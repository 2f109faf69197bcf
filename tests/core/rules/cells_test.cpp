// The rules of core/rules/entries.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using Findings = std::vector<std::string>;
using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;

TEST(MicrobatchMissing, NamesTheCellAndItsPlace) {
  const Checked checked = check_csv("0F0,0F,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S07@1"});
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{4, 2}, ""}}));
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
  EXPECT_EQ(check_csv("0F0,0B0\n1F0,1B\n").findings(), Findings{"S07@1"});
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

TEST(DroppedText, SaysWhatPyTorchMakesOfTheCell) {
  const Checked checked = check_csv("0F0,0F1.5,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S08@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 5}, ""}}));
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
  EXPECT_EQ(check_csv("0F0,0B0\n1F0,1B0x\n").first().witness.tasks.at(0).rank, 1);
}

TEST(DroppedText, PointsIntoTheRowOfAJsonTable) {
  const Checked checked = check_text(R"({"csv": ["0F0,0F1x,0B0"]})");
  ASSERT_EQ(checked.findings(), Findings{"S08@1"});
  EXPECT_EQ(checked.input.source.slice(checked.first().labels.at(0).span), "0F1x");
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

TEST(CompositeForm, NamesTheCompositeOfAnotherType) {
  const Checked checked = check_csv("0F0,(0F1;0B0)B,0B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S09@1"});
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{4, 10}, ""}}));
}

TEST(CompositeForm, NamesTheCompositeWithoutMembers) {
  EXPECT_EQ(check_csv("0F0,()OVERLAP_F_B,0B0\n").findings(), Findings{"S09@1"});
}

TEST(CompositeForm, TakesEveryOtherTypeForWrong) {
  for (const std::string type :
       {"F", "B", "I", "W", "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F"}) {
    EXPECT_EQ(check_csv("0F0,(0F1;0B0)" + type + ",0B1\n").findings(), Findings{"S09@1"}) << type;
  }
}

TEST(CompositeForm, ReportsOnceWhatHasNeitherMembersNorTheRightType) {
  EXPECT_EQ(check_csv("0F0,()B,0B0\n").findings(), Findings{"S09@1"});
  EXPECT_EQ(check_csv("0F0,( ; )OVERLAP_F_B,0B0\n").findings(), Findings{"S09@1"});
}

TEST(CompositeForm, AcceptsAComposite) {
  EXPECT_TRUE(check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n").accepted());
  EXPECT_TRUE(check_csv("(0F0)OVERLAP_F_B,0B0\n").accepted()) << "one member is enough";
}

TEST(CompositeForm, LeavesATypeThatPyTorchDoesNotKnowToTheReader) {
  EXPECT_EQ(check_csv("0F0,(0F1;0B0)FB,0B1\n").findings(), Findings{"I01@-"});
  EXPECT_EQ(check_csv("0F0,(0F1;0B0),0B1\n").findings(), Findings{"I01@-"});
}

TEST(SurplusMicrobatch, NamesTheCell) {
  const Checked checked = check_csv("0F0,0B0,0REDUCE_GRAD7\n");
  ASSERT_EQ(checked.findings(), Findings{"S10@2"});
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{8, 13}, ""}}));
}

TEST(SurplusMicrobatch, ConcernsEveryActionOfAWholeStage) {
  for (const std::string type : {"UNSHARD", "RESHARD", "REDUCE_GRAD"}) {
    EXPECT_EQ(check_csv("0" + type + "0,0F0,0B0\n").findings(), Findings{"S10@0"}) << type;
  }
  EXPECT_TRUE(check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n").accepted());
}

TEST(SurplusMicrobatch, CountsCellsPerRank) {
  const Checked checked = check_csv("0UNSHARD,0F0,0B0\n1F0,1UNSHARD3,1B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S10@1"});
  EXPECT_EQ(checked.first().witness.tasks.at(0).rank, 1);
}

TEST(SurplusMicrobatch, LooksIntoComposites) {
  EXPECT_EQ(check_csv("(0UNSHARD1;0F0)OVERLAP_F_B,0B0\n").findings(), Findings{"S10@0"});
}

TEST(SurplusMicrobatch, ReportsACompositeOnce) {
  EXPECT_EQ(check_csv("0F0,(0UNSHARD1;0RESHARD1)OVERLAP_F_B,0B0,0UNSHARD2\n").findings(),
            (Findings{"S10@1", "S10@3"}));
}

TEST(SurplusMicrobatch, DoesNotMindItsRangeAsWell) {
  EXPECT_EQ(check_csv("0F0,0B0,0REDUCE_GRAD7\n", {.microbatches = 1}).findings(),
            Findings{"S10@2"});
}

TEST(SurplusMicrobatch, LeavesTheOrderLanguageToItsReader) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 reduce1.0\n").findings(), Findings{"I01@-"});
}

TEST(TableForm, NamesTheTransferInAComputeOnlyTable) {
  const Checked checked = check_csv("0F0,0SEND_F0,0B0\n", {.communicates = false});
  ASSERT_EQ(checked.findings(), Findings{"S11@1"});
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{4, 8}, ""}}));
}

TEST(TableForm, NamesTheIdleSlotInATableWithTransfers) {
  const Checked checked = check_csv("0F0,,0B0\n", {.communicates = true});
  ASSERT_EQ(checked.findings(), Findings{"S11@1"});
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{4, 0}, ""}})) << "between the two commas";
}

TEST(TableForm, OneTransferMakesATableOneWithTransfersOnEveryRank) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0B0\n1F0,,1B0\n").findings(), Findings{"S11@1"});
  EXPECT_TRUE(check_csv("0F0,,0B0\n1F0,,1B0\n").accepted());
}

TEST(TableForm, ConcernsEveryKindOfTransfer) {
  for (const std::string type : {"SEND_F", "RECV_F", "SEND_B", "RECV_B"}) {
    const std::string table = "0F0,0B0,0" + type + "0\n";
    EXPECT_EQ(check_csv(table, {.communicates = false}).findings(), Findings{"S11@2"}) << type;
    EXPECT_EQ(check_csv(table).findings(), Findings{"T02@2"}) << type << ": to no other rank";
  }
}

TEST(TableForm, AllowsActionsOfAWholeStageInBoth) {
  for (const bool communicates : {false, true}) {
    EXPECT_TRUE(
        check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n", {.communicates = communicates}).accepted());
  }
}

TEST(TableForm, AJsonTableDeclaresItsForm) {
  EXPECT_EQ(check_text(R"({"csv": ["0F0,,0B0"], "format": "comms"})").findings(),
            Findings{"S11@1"});
  EXPECT_TRUE(check_text(R"({"csv": ["0F0,,0B0"], "format": "compute"})").accepted());
}

TEST(TableForm, HasNothingToSayAboutOrderFiles) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 . send-F1.0 B1.0\n").accepted());
}

}  // namespace
}  // namespace capo
