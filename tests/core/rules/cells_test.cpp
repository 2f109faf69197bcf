// The rules of core/rules/entries.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::labels;

TEST(MicrobatchMissing, ConcernsEveryActionOfAMicrobatch) {
  for (const std::string type : {"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B"}) {
    EXPECT_EQ(check_csv("0F0,0B0,0" + type + "\n").findings(), Found{"S07@2"}) << type;
  }
}

TEST(MicrobatchMissing, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheCellAndItsPlace", check_csv("0F0,0F,0B0\n"), "S07@1", labels("4+2")},
      {"AllowsActionsOfAWholeStage", check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n")},
      {"SaysOnWhichRank", check_csv("0F0,0B0\n1F0,1B\n"), "S07@1"},
      {"LooksIntoComposites", check_csv("0F0,(0F;0B0)OVERLAP_F_B\n"), "S07@1"},
      {"", check_csv("0F0,(0F;0B)OVERLAP_F_B\n"), "S07@1 S07@1"},
      {"AcceptsTheNumber", check_csv("0F0,0F1,0B0,0B1\n")},
      {"HasNothingToSayWhereMicrobatchesAreCounted", check_text("capo 1\nrank 0: F1 B1\n")},
      {"LeavesACellThatPyTorchReadsInPartToDroppedText", check_csv("0F0,0FOO,0B0\n"), "S08@1"},
      {"", check_csv("0F0,0BW0\n"), "S08@1"},
      {"LeavesAMixtureInAnOrderFileToTheReader", check_text("capo 1\nrank 0: F1.0 B1\n"), "I01@-"},
      {"", check_text("capo 1\nrank 0: F1.0 dispatch-F1 B1.0\n"), "I01@-"},
  });
}

TEST(DroppedText, SaysWhatPyTorchMakesOfTheCell) {
  const Checked checked = check_csv("0F0,0F1.5,0B0\n");
  ASSERT_EQ(checked.findings(), Found{"S08@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 5}, ""}}));
  EXPECT_EQ(finding.witness.tasks.at(0).action, "0F1") << "a program learns what torch reads";
}

TEST(DroppedText, FindsWhateverStandsBehindAnAction) {
  for (const std::string cell : {"0F0x", "0F0 1B0", "0F0;1B0", "0F0)", "0F0.0", "0F-1", "0FOO",
                                 "0BW0", "0F0 # the first", "0REDUCE_GRADS"}) {
    EXPECT_EQ(check_csv(cell + ",0F0,0B0\n").findings(), Found{"S08@0"}) << cell;
  }
}

TEST(DroppedText, CountsCellsPerRank) {
  EXPECT_EQ(check_csv("0F0,0B0\n1F0,1B0x\n").findings(), Found{"S08@1"});
  EXPECT_EQ(check_csv("0F0,0B0\n1F0,1B0x\n").first().witness.tasks.at(0).rank, 1);
}

TEST(DroppedText, PointsIntoTheRowOfAJsonTable) {
  const Checked checked = check_text(R"({"csv": ["0F0,0F1x,0B0"]})");
  ASSERT_EQ(checked.findings(), Found{"S08@1"});
  EXPECT_EQ(checked.input.source.slice(checked.first().labels.at(0).span), "0F1x");
}

TEST(DroppedText, StandsHereAndNotThere) {
  expect_findings({
      {"FindsItInAMemberOfAComposite", check_csv("0F0,(0F1x;0B0)OVERLAP_F_B,0B1\n"), "S08@1"},
      {"AcceptsBlanksAroundACellAndLeadingZeros", check_csv(" 0F0 ,\t0B0\n")},
      {"", check_csv("00F00,0B000\n")},
      {"", check_csv("0F0,( 0F1 ; 0B0 )OVERLAP_F_B,0B1\n")},
      {"LeavesACellThatPyTorchRefusesToTheReader", check_csv("0F0,x0B0\n"), "I01@-"},
      {"", check_csv("0F0,0f0\n"), "I01@-"},
      {"LeavesASurplusNumberToSurplusMicrobatch", check_csv("0F0,0B0,0REDUCE_GRAD7\n"), "S10@2"},
      {"IsOneFindingOfACompositeAndOneOfEachRank", check_csv("0F0,(0F1.5;0B0.5)OVERLAP_F_B,0B1\n"),
       "S08@1"},
      {"", check_csv("0F0.5,0B0\n1F0.5,1B0\n"), "S08@0 S08@0"},
      {"IsOneFindingOfEachCellThatHasAny", check_csv("0F0.5,0B0.5\n"), "S08@0 S08@1"},
  });
}

TEST(CompositeForm, TakesEveryOtherTypeForWrong) {
  for (const std::string type :
       {"F", "B", "I", "W", "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F"}) {
    EXPECT_EQ(check_csv("0F0,(0F1;0B0)" + type + ",0B1\n").findings(), Found{"S09@1"}) << type;
  }
}

TEST(CompositeForm, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheCompositeOfAnotherType", check_csv("0F0,(0F1;0B0)B,0B1\n"), "S09@1",
       labels("4+10")},
      {"NamesTheCompositeWithoutMembers", check_csv("0F0,()OVERLAP_F_B,0B0\n"), "S09@1"},
      {"ReportsOnceWhatHasNeitherMembersNorTheRightType", check_csv("0F0,()B,0B0\n"), "S09@1"},
      {"", check_csv("0F0,( ; )OVERLAP_F_B,0B0\n"), "S09@1"},
      {"AcceptsAComposite", check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n")},
      {"", check_csv("(0F0)OVERLAP_F_B,0B0\n"), "", because("one member is enough")},
      {"LeavesATypeThatPyTorchDoesNotKnowToTheReader", check_csv("0F0,(0F1;0B0)FB,0B1\n"), "I01@-"},
      {"", check_csv("0F0,(0F1;0B0),0B1\n"), "I01@-"},
  });
}

TEST(SurplusMicrobatch, ConcernsEveryActionOfAWholeStage) {
  for (const std::string type : {"UNSHARD", "RESHARD", "REDUCE_GRAD"}) {
    EXPECT_EQ(check_csv("0" + type + "0,0F0,0B0\n").findings(), Found{"S10@0"}) << type;
  }
  EXPECT_TRUE(check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n").accepted());
}

TEST(SurplusMicrobatch, CountsCellsPerRank) {
  const Checked checked = check_csv("0UNSHARD,0F0,0B0\n1F0,1UNSHARD3,1B0\n");
  ASSERT_EQ(checked.findings(), Found{"S10@1"});
  EXPECT_EQ(checked.first().witness.tasks.at(0).rank, 1);
}

TEST(SurplusMicrobatch, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheCell", check_csv("0F0,0B0,0REDUCE_GRAD7\n"), "S10@2", labels("8+13")},
      {"LooksIntoComposites", check_csv("(0UNSHARD1;0F0)OVERLAP_F_B,0B0\n"), "S10@0"},
      {"ReportsACompositeOnce", check_csv("0F0,(0UNSHARD1;0RESHARD1)OVERLAP_F_B,0B0,0UNSHARD2\n"),
       "S10@1 S10@3"},
      {"DoesNotMindItsRangeAsWell", check_csv("0F0,0B0,0REDUCE_GRAD7\n", {.microbatches = 1}),
       "S10@2"},
      {"LeavesTheOrderLanguageToItsReader", check_text("capo 1\nrank 0: F1.0 B1.0 reduce1.0\n"),
       "I01@-"},
  });
}

TEST(TableForm, ConcernsEveryKindOfTransfer) {
  for (const std::string type : {"SEND_F", "RECV_F", "SEND_B", "RECV_B"}) {
    const std::string table = "0F0,0B0,0" + type + "0\n";
    EXPECT_EQ(check_csv(table, {.communicates = false}).findings(), Found{"S11@2"}) << type;
    EXPECT_EQ(check_csv(table).findings(), Found{"T02@2"}) << type << ": to no other rank";
  }
}

TEST(TableForm, AllowsActionsOfAWholeStageInBoth) {
  for (const bool communicates : {false, true}) {
    EXPECT_TRUE(
        check_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n", {.communicates = communicates}).accepted());
  }
}

TEST(TableForm, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheTransferInAComputeOnlyTable",
       check_csv("0F0,0SEND_F0,0B0\n", {.communicates = false}), "S11@1", labels("4+8")},
      {"NamesTheIdleSlotInATableWithTransfers", check_csv("0F0,,0B0\n", {.communicates = true}),
       "S11@1", because("between the two commas"), labels("4+0")},
      {"OneTransferMakesATableOneWithTransfersOnEveryRank",
       check_csv("0F0,0SEND_F0,0B0\n1F0,,1B0\n"), "S11@1"},
      {"", check_csv("0F0,,0B0\n1F0,,1B0\n")},
      {"AJsonTableDeclaresItsForm", check_text(R"({"csv": ["0F0,,0B0"], "format": "comms"})"),
       "S11@1"},
      {"", check_text(R"({"csv": ["0F0,,0B0"], "format": "compute"})")},
      {"HasNothingToSayAboutOrderFiles", check_text("capo 1\nrank 0: F1.0 . send-F1.0 B1.0\n")},
  });
}

}  // namespace
}  // namespace capo
