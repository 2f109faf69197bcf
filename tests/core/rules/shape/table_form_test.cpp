#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(TableForm, NamesTheTransferInAComputeOnlyTable) {
  const Checked checked = check_csv("0F0,0SEND_F0,0B0\n", {.communicates = false});
  ASSERT_EQ(checked.findings(), Findings{"S11@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`0SEND_F0` at index 1 of rank 0 is a transfer in a compute-only table");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 8}, ""}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "read the table with `--csv comms`, or leave the transfers to PyTorch"}));
}

TEST(TableForm, NamesTheIdleSlotInATableWithTransfers) {
  const Checked checked = check_csv("0F0,,0B0\n", {.communicates = true});
  ASSERT_EQ(checked.findings(), Findings{"S11@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "the empty cell at index 1 of rank 0 is an idle slot in a table with transfers");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 0}, ""}})) << "between the two commas";
  EXPECT_EQ(finding.help,
            (Help{.text = "remove the empty cell: idle slots belong to compute-only tables"}));
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
