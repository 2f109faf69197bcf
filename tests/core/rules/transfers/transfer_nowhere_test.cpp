#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(TransferNowhere, ShowsATransferAtTheEndOfTheModel) {
  const Checked checked =
      check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T02@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`1SEND_F0` at index 2 of rank 1 has no other end: stage 1 is the last");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{39, 8}, ""}}));
  EXPECT_EQ(finding.help, (Help{.text = "remove it"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{1, 2, "1SEND_F0", "send-F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(TransferNowhere, ConcernsEveryKindOfTransferAtItsOwnEnd) {
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0";
  const std::string last = "1RECV_F0,1F0,1B0,1SEND_B0";
  const auto reason = [](const Checked& checked) {
    const std::string& message = checked.result.diagnostics.kept().at(0).message;
    return message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(reason(check_csv(first + ",0SEND_B0\n" + last + "\n")), "stage 0 is the first");
  EXPECT_EQ(reason(check_csv("0RECV_F0," + first + "\n" + last + "\n")), "stage 0 is the first");
  EXPECT_EQ(reason(check_csv(first + "\n" + last + ",1SEND_F0\n")), "stage 1 is the last");
  EXPECT_EQ(reason(check_csv(first + "\n1RECV_B0," + last + "\n")), "stage 1 is the last");
}

TEST(TransferNowhere, ConcernsStagesOfOneRank) {
  const Checked checked = check_csv("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n");
  ASSERT_EQ(checked.findings(), (Findings{"T02@1", "T02@2"}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`0SEND_F0` at index 1 has no other end: the stage at its other end is on rank 0 as well");
}

TEST(TransferNowhere, GoesByThePlacement) {
  const std::string ranks =
      "rank 0: F1.0 send-F1.0 recv-F2.0 F2.0 B2.0 send-B2.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 F2.0 send-F2.0 recv-B2.0 B2.0 B1.0 send-B1.0\n";
  EXPECT_TRUE(check_text("capo 1\nplacement v\n" + ranks).accepted());
  EXPECT_FALSE(check_text("capo 1\nplacement loop\n" + ranks).accepted());
}

TEST(TransferNowhere, ConcernsAMicrobatchThatTheStepDoesNotHave) {
  const std::string table = "0F0,0SEND_F0,0RECV_B0,0B0,0SEND_F1\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  const Checked checked = check_csv(table);
  ASSERT_EQ(checked.findings(), Findings{"T02@4"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "`0SEND_F1` at index 4 of rank 0 has no other end: the step has 1 microbatch (only 0)");
  EXPECT_EQ(check_csv(table, {.microbatches = 1}).findings(), Findings{"S19@4"})
      << "where it is declared, microbatch-out-of-range says so";
}

TEST(TransferNowhere, IsOneFindingForOneTransfer) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B1\n1RECV_F0,1F0,1B0,1SEND_B0\n").findings(),
            Findings{"T02@4"});
}

TEST(TransferNowhere, AsksNothingOfChunksThatAreNotWired) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 send-F1.0 B1.0\n").accepted());
}

TEST(TransferNowhere, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  const Checked checked =
      check_text(text + "rank 1 replay: recv-F1.0 F1.0 send-F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"T02@2"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`send-F1.0` at index 2 of rank 1's replay order has no other end: stage 1 is the last");
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0\n"
                       "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                       "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T02@4"});
}

TEST(TransferNowhere, ConcernsAReplayThatAloneTransfers) {
  EXPECT_EQ(check_text("capo 1\nplacement loop\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                       "rank 0 replay: F1.0 send-F1.0 F2.0 B2.0 B1.0\n")
                .findings(),
            Findings{"T02@1"});
}

TEST(TransferNowhere, OfAMicrobatchBeyondTheStepStaysOnItsRankToo) {
  EXPECT_EQ(check_csv("0F0,0SEND_F7,1RECV_F7,1F0,1B0,0B0\n").findings(),
            (Findings{"T02@1", "T02@2"}));
}

TEST(TransferNowhere, OfARankThatReplaysWhatItCapturesIsSaidOnce) {
  const std::string order =
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0 send-F1.1\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  const Findings once = check_text(order).findings();
  EXPECT_EQ(once, Findings{"T02@4"});
  EXPECT_EQ(check_text(order + "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n").findings(), once);
}

}  // namespace
}  // namespace capo
