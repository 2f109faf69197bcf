#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(SurplusMicrobatch, NamesTheCell) {
  const Checked checked = check_csv("0F0,0B0,0REDUCE_GRAD7\n");
  ASSERT_EQ(checked.findings(), Findings{"S10@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`0REDUCE_GRAD7` at index 2 of rank 0 names a microbatch, but acts on a whole stage");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 13}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "leave the number of the microbatch out"}));
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
  EXPECT_EQ(checked.result.diagnostics.kept().front().witness.tasks.at(0).rank, 1);
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

}  // namespace
}  // namespace capo
