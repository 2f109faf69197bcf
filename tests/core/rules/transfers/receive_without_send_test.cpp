#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(ReceiveWithoutSend, ShowsTheReceive) {
  const Checked checked = check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T04@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`1RECV_F0` at index 0 of rank 1 waits for ever: there is no `0SEND_F0` on rank 0");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{17, 8}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "add `0SEND_F0` on rank 0, or remove the receive"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{1, 0, "1RECV_F0", "recv-F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(ReceiveWithoutSend, ConcernsGradientsAndEveryRank) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n").findings(),
            Findings{"T04@2"});
  EXPECT_EQ(check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n").findings(),
            (Findings{"T04@1", "T04@0"}));
}

TEST(ReceiveWithoutSend, GoesByTheMicrobatch) {
  const Checked checked = check_csv(
      "0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n");
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "`1RECV_F0` at index 0 of rank 1 waits for ever: there is no `0SEND_F0` on rank 0");
  EXPECT_EQ(checked.findings(), Findings{"T04@0"}) << "the others are not mixed up by it";
}

TEST(ReceiveWithoutSend, SpeaksTheFormOfTheInput) {
  EXPECT_EQ(check_text("{\"placement\": \"chain\", \"microbatches\": 1, \"ranks\": ["
                       "{\"order\": [\"F1.0\", \"recv-B1.0\", \"B1.0\"]},"
                       "{\"order\": [\"recv-F1.0\", \"F1.0\", \"B1.0\", \"send-B1.0\"]}]}")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`recv-F1.0` at index 0 of rank 1 waits for ever: there is no `send-F1.0` on rank 0");
}

TEST(ReceiveWithoutSend, JudgesCaptureAndReplayEachWithTheirOtherEnd) {
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 0 replay: F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  const Checked checked = check_text(text);
  ASSERT_EQ(checked.findings(), Findings{"T04@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "`recv-F1.0` at index 0 of rank 1 waits for ever: there is no `send-F1.0` in rank 0's "
            "replay order");
}

TEST(ReceiveWithoutSend, AcceptsWhereBothAreThere) {
  EXPECT_TRUE(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").accepted());
}

}  // namespace
}  // namespace capo
