#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(TransferTwice, ShowsBoth) {
  const Checked checked =
      check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1RECV_F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T01@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`1RECV_F0` at index 2 of rank 1 is the same transfer a second time");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{39, 8}, "again"}, {{26, 8}, "it is done here already"}}));
  EXPECT_EQ(finding.help, (Help{.text = "remove one of the two; is another microbatch meant?"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{1, 0, "1RECV_F0", "recv-F(c1,m0)"},
                                        {1, 2, "1RECV_F0", "recv-F(c1,m0)"}}));
}

TEST(TransferTwice, ConcernsEveryKindOfTransfer) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").findings(),
            Findings{"T01@1"});
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1SEND_B0\n").findings(),
            Findings{"T01@3"});
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").findings(),
            Findings{"T01@2"});
}

TEST(TransferTwice, ReportsEachTimeButTheFirst) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n")
                .findings(),
            (Findings{"T01@1", "T01@1"}));
}

TEST(TransferTwice, AcceptsEachMicrobatchOnce) {
  EXPECT_TRUE(check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                        "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                  .accepted());
}

TEST(TransferTwice, CountsWhereMicrobatchesAreCounted) {
  const std::string text = "capo 1\nplacement chain\nrank 0: F1 send-F1 recv-B1 B1\nrank 1: ";
  EXPECT_TRUE(check_text(text + "recv-F1 F1 B1 send-B1\n").accepted());
  EXPECT_EQ(check_text(text + "recv-F1 F1 B1 send-B1 send-B1\n").findings(), Findings{"T02@4"})
      << "the second one is that of a microbatch that there is not";
}

TEST(TransferTwice, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  const std::string capture = "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n";
  EXPECT_EQ(check_text(capture + "rank 0 replay: F1.0 send-F1.0 send-F1.0 recv-B1.0 B1.0\n"
                                 "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`send-F1.0` at index 2 of rank 0's replay order is the same transfer a second time");
  EXPECT_EQ(check_text(capture + "rank 0 replay: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                                 "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 send-B1.0\n")
                .findings(),
            Findings{"T01@3"});
}

TEST(TransferTwice, LeavesComputationsToRepeatedAction) {
  EXPECT_EQ(check_csv("0F0,0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").findings(),
            Findings{"S20@0"});
}

}  // namespace
}  // namespace capo
