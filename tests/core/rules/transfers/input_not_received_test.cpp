#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(InputNotReceived, ShowsTheReaderAndBothEndsThatAreMissing) {
  const Checked checked = check_csv("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T05@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`1F0` at index 0 of rank 1 reads the output of stage 0, but there is no `0SEND_F0` on "
            "rank 0 and no `1RECV_F0` on rank 1");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{17, 3}, ""}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "add both; an order that writes no transfer at all gets them "
                          "as PyTorch adds them"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{1, 0, "1F0", "F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(InputNotReceived, ConcernsGradients) {
  const Checked checked = check_csv("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n");
  EXPECT_EQ(checked.findings(), Findings{"T05@2"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`0B0` at index 2 of rank 0 reads the gradient of stage 1, but there is no `1SEND_B0` on "
      "rank 1 and no `0RECV_B0` on rank 0");
}

TEST(InputNotReceived, ConcernsTheInputHalfAndNotTheWeights) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0I0,0W0\n1RECV_F0,1F0,1I0,1W0\n").findings(),
            Findings{"T05@2"});
  EXPECT_TRUE(
      check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n").accepted());
}

TEST(InputNotReceived, GoesByTheMicrobatch) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0F1,0RECV_B0,0B0,0B1\n"
                      "1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1\n")
                .findings(),
            (Findings{"T05@5", "T05@2"}));
}

TEST(InputNotReceived, NeedsNoTransferOnOneRank) {
  EXPECT_TRUE(
      check_csv("0F0,1F0,1SEND_F0,1RECV_B0,1B0,0B0\n2RECV_F0,2F0,2B0,2SEND_B0\n").accepted());
}

TEST(InputNotReceived, DoesNotOccurWhereNoTransferIsWritten) {
  EXPECT_TRUE(check_csv("0F0,0B0\n1F0,1B0\n").accepted());
}

TEST(InputNotReceived, LeavesOneMissingEndToTheOtherOne) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n").findings(),
            Findings{"T03@1"});
  EXPECT_EQ(check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").findings(),
            Findings{"T04@0"});
}

TEST(InputNotReceived, JudgesTheReplayOrders) {
  const Checked checked = check_text(
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 0 replay: F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
      "rank 1 replay: F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"T05@0"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`F1.0` at index 0 of rank 1's replay order reads the output of stage 0, but there is no "
      "`send-F1.0` in rank 0's replay order and no `recv-F1.0` in rank 1's replay order");
}

}  // namespace
}  // namespace capo
