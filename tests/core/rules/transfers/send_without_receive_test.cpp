#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kLast = "1RECV_F0,1F0,1B0,1SEND_B0\n";

TEST(SendWithoutReceive, ShowsTheSendAndTheReader) {
  const Checked checked = check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T03@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`0SEND_F0` at index 1 of rank 0 is never received: there is no `1RECV_F0` on rank 1");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{4, 8}, ""}, {{26, 3}, "this reads what is sent"}}));
  EXPECT_EQ(finding.help, (Help{.text = "add `1RECV_F0` before `1F0` at index 0 of rank 1"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 1, "0SEND_F0", "send-F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(SendWithoutReceive, ConcernsGradients) {
  EXPECT_EQ(
      check_csv("0F0,0SEND_F0,0B0\n" + std::string(kLast)).result.diagnostics.kept().at(0).message,
      "`1SEND_B0` at index 3 of rank 1 is never received: there is no `0RECV_B0` on rank 0");
}

TEST(SendWithoutReceive, IsAFaultOfBufferedSendsToo) {
  EXPECT_EQ(check_in({.environment = {.transfers = TransferMode::Buffered}},
                     "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n")
                .findings(),
            Findings{"T03@1"});
}

TEST(SendWithoutReceive, GoesByTheMicrobatch) {
  const Checked checked = check_csv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n");
  EXPECT_EQ(checked.findings(), Findings{"T03@3"});
}

TEST(SendWithoutReceive, ReportsEverySend) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                      "1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                .findings(),
            (Findings{"T03@1", "T03@3"}));
}

TEST(SendWithoutReceive, AcceptsWhereBothAreThere) {
  EXPECT_TRUE(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n" + std::string(kLast)).accepted());
}

TEST(SendWithoutReceive, JudgesCaptureAndReplayEachWithTheirOtherEnd) {
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\nrank 1: ";
  const Checked replay = check_text(text +
                                    "recv-F1.0 F1.0 B1.0 send-B1.0\n"
                                    "rank 1 replay: F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(replay.findings(), Findings{"T03@1"});
  EXPECT_EQ(
      replay.result.diagnostics.kept().at(0).message,
      "`send-F1.0` at index 1 of rank 0 is never received: there is no `recv-F1.0` in rank 1's "
      "replay order");
  const Checked both = check_text(text +
                                  "F1.0 B1.0 send-B1.0\n"
                                  "rank 1 replay: F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(both.findings(), (Findings{"T03@1", "T03@1"}));
  EXPECT_NE(both.result.diagnostics.kept().at(0).message,
            both.result.diagnostics.kept().at(1).message);
}

TEST(SendWithoutReceive, OfCaptureOrdersIsReportedOnce) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n").findings().size(), 1u);
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                       "rank 1: F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0\n"
                       "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                       "rank 2 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T03@1"});
}

}  // namespace
}  // namespace capo
