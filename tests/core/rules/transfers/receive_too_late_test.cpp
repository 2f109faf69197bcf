#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(ReceiveTooLate, ShowsTheReceiveAndItsReader) {
  const Checked checked = check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T07@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`1RECV_F0` at index 1 of rank 1 comes behind `1F0`, which reads what it receives");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{30, 8}, ""}, {{26, 3}, "what it receives is read here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move it before `1F0`"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{1, 1, "1RECV_F0", "recv-F(c1,m0)"},
                                                               {1, 0, "1F0", "F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(ReceiveTooLate, ConcernsGradientsAndTheInputHalf) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").findings(),
            Findings{"T07@3"});
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0I0,0RECV_B0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n").findings(),
            Findings{"T07@3"});
}

TEST(ReceiveTooLate, AllowsReceivesFarAhead) {
  EXPECT_TRUE(check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1\n"
                        "1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                  .accepted());
}

TEST(ReceiveTooLate, IsBehindACompositeThatReadsIt) {
  const std::string rank0 = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n";
  const Checked checked =
      check_csv(rank0 + "1RECV_F0,1F0,(1F1;1B0)OVERLAP_F_B,1RECV_F1,1SEND_B0,1B1,1SEND_B1\n");
  ASSERT_EQ(checked.findings(), Findings{"T07@3"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`1RECV_F1` at index 3 of rank 1 comes behind `(1F1;1B0)OVERLAP_F_B`, which reads what it "
      "receives");
  EXPECT_TRUE(
      check_csv(rank0 + "1RECV_F0,1F0,1RECV_F1,(1F1;1B0)OVERLAP_F_B,1SEND_B0,1B1,1SEND_B1\n")
          .accepted());
}

TEST(ReceiveTooLate, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  const std::string rank0 = "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n";
  const Checked replay = check_text(rank0 +
                                    "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                                    "rank 1 replay: F1.0 recv-F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(replay.findings(), Findings{"T07@1"});
  EXPECT_EQ(
      replay.result.diagnostics.kept().at(0).message,
      "`recv-F1.0` at index 1 of rank 1's replay order comes behind `F1.0`, which reads what it "
      "receives");
  EXPECT_EQ(check_text(rank0 + "rank 0 replay: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                               "rank 1: F1.0 recv-F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T07@1"});
}

}  // namespace
}  // namespace capo
