// The rules of core/rules/transfers.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using Findings = std::vector<std::string>;
using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;

TEST(TransferTwice, ShowsBoth) {
  const Checked checked =
      check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1RECV_F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T01@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{1, 0, "1RECV_F0", "recv-F(c1,m0)"},
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
                .first()
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

TEST(TransferNowhere, ShowsATransferAtTheEndOfTheModel) {
  const Checked checked =
      check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T02@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{39, 8}, ""}}));
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{1, 2, "1SEND_F0", "send-F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(TransferNowhere, ConcernsEveryKindOfTransferAtItsOwnEnd) {
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0";
  const std::string last = "1RECV_F0,1F0,1B0,1SEND_B0";
  const auto reason = [](const Checked& checked) {
    const std::string& message = checked.first().message;
    return message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(reason(check_csv(first + ",0SEND_B0\n" + last + "\n")), "stage 0 is the first");
  EXPECT_EQ(reason(check_csv("0RECV_F0," + first + "\n" + last + "\n")), "stage 0 is the first");
  EXPECT_EQ(reason(check_csv(first + "\n" + last + ",1SEND_F0\n")), "stage 1 is the last");
  EXPECT_EQ(reason(check_csv(first + "\n1RECV_B0," + last + "\n")), "stage 1 is the last");
}

TEST(TransferNowhere, ConcernsStagesOfOneRank) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n").findings(),
            (Findings{"T02@1", "T02@2"}));
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
  EXPECT_EQ(check_csv(table).findings(), Findings{"T02@4"});
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
      checked.first().message,
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

constexpr const char* kLast = "1RECV_F0,1F0,1B0,1SEND_B0\n";

TEST(SendWithoutReceive, ShowsTheSendAndTheReader) {
  const Checked checked = check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T03@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{0, 1, "0SEND_F0", "send-F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(SendWithoutReceive, ConcernsGradients) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0B0\n" + std::string(kLast)).first().message,
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
  const Checked both = check_text(text +
                                  "F1.0 B1.0 send-B1.0\n"
                                  "rank 1 replay: F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(both.findings(), (Findings{"T03@1", "T03@1"}));
  EXPECT_NE(both.first().message, both.result.diagnostics.kept().at(1).message);
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

TEST(ReceiveWithoutSend, ShowsTheReceive) {
  const Checked checked = check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T04@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{17, 8}, ""}}));
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{1, 0, "1RECV_F0", "recv-F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(ReceiveWithoutSend, ConcernsGradientsAndEveryRank) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n").findings(),
            Findings{"T04@2"});
  EXPECT_EQ(check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n").findings(),
            (Findings{"T04@1", "T04@0"}));
}

TEST(ReceiveWithoutSend, GoesByTheMicrobatch) {
  EXPECT_EQ(check_csv("0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                .findings(),
            Findings{"T04@0"})
      << "the others are not mixed up by it";
}

TEST(ReceiveWithoutSend, SpeaksTheFormOfTheInput) {
  EXPECT_EQ(check_text("{\"placement\": \"chain\", \"microbatches\": 1, \"ranks\": ["
                       "{\"order\": [\"F1.0\", \"recv-B1.0\", \"B1.0\"]},"
                       "{\"order\": [\"recv-F1.0\", \"F1.0\", \"B1.0\", \"send-B1.0\"]}]}")
                .first()
                .message,
            "`recv-F1.0` at index 0 of rank 1 waits for ever: there is no `send-F1.0` on rank 0");
}

TEST(ReceiveWithoutSend, JudgesCaptureAndReplayEachWithTheirOtherEnd) {
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 0 replay: F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  EXPECT_EQ(check_text(text).findings(), Findings{"T04@0"});
}

TEST(ReceiveWithoutSend, AcceptsWhereBothAreThere) {
  EXPECT_TRUE(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").accepted());
}

TEST(InputNotReceived, ShowsTheReaderAndBothEndsThatAreMissing) {
  const Checked checked = check_csv("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T05@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{17, 3}, ""}}));
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{1, 0, "1F0", "F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(InputNotReceived, ConcernsGradients) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n").findings(), Findings{"T05@2"});
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
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                       "rank 0 replay: F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                       "rank 1 replay: F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T05@0"});
}

TEST(SendTooEarly, ShowsTheSendAndWhatMakesItsMessage) {
  const Checked checked = check_csv("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T06@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{0, 0, "0SEND_F0", "send-F(c1,m0)"},
                                                              {0, 1, "0F0", "F(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(SendTooEarly, ConcernsGradientsAndTheInputHalf) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n").findings(),
            Findings{"T06@2"});
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n").findings(),
            Findings{"T06@2"});
  EXPECT_TRUE(
      check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1W0,1SEND_B0\n").accepted());
}

TEST(SendTooEarly, AllowsOtherComputationsBetween) {
  EXPECT_TRUE(check_csv("0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                        "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                  .accepted());
}

TEST(SendTooEarly, IsBeforeACompositeThatMakesItsMessage) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0SEND_F1,(0F1;0B0)OVERLAP_F_B,0RECV_B1,0B1\n"
                      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                .findings(),
            Findings{"T06@3"});
}

TEST(SendTooEarly, IsNoDeadlockAsWell) {
  const Checked checked = check_csv(
      "0SEND_F0,0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  EXPECT_EQ(checked.findings(), Findings{"T06@0"}) << "a deadlock shows when this is cured";
}

TEST(SendTooEarly, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  const std::string rank1 = "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  const Checked replay = check_text(
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 0 replay: send-F1.0 F1.0 recv-B1.0 B1.0\n" +
      rank1);
  ASSERT_EQ(replay.findings(), Findings{"T06@0"});
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: send-F1.0 F1.0 recv-B1.0 B1.0\n" + rank1 +
                       "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T06@0"});
}

TEST(ReceiveTooLate, ShowsTheReceiveAndItsReader) {
  const Checked checked = check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n");
  ASSERT_EQ(checked.findings(), Findings{"T07@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{1, 1, "1RECV_F0", "recv-F(c1,m0)"},
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
  EXPECT_EQ(check_text(rank0 + "rank 0 replay: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                               "rank 1: F1.0 recv-F1.0 B1.0 send-B1.0\n")
                .findings(),
            Findings{"T07@1"});
}

constexpr const char* kTable =
    "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1\n";

TEST(MessageMismatch, ShowsTheReceiveAndTheSendThatItMeets) {
  const Checked checked = check_csv(kTable);
  ASSERT_EQ(checked.findings(), Findings{"T08@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Mismatch);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{0, 2, "0SEND_F0", "send-F(c1,m0)"},
                                       {1, 0, "1RECV_F1", "recv-F(c1,m1)"}}));
}

TEST(MessageMismatch, IsOneFindingForEachDirectionBetweenTwoRanks) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0RECV_B0,0B0,0B1\n"
                      "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                .findings(),
            (Findings{"T08@5", "T08@1"}));
}

TEST(MessageMismatch, DoesNotDependOnHowTransfersQueueUp) {
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      EXPECT_EQ(check_in({.environment = {.communicators = layout, .transfers = mode}}, kTable)
                    .findings(),
                Findings{"T08@2"})
          << name_of(layout) << " " << name_of(mode);
    }
  }
}

TEST(MessageMismatch, DoesNotMindWhichOrderIfItIsOne) {
  EXPECT_TRUE(check_csv("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
                        "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                  .accepted());
}

TEST(MessageMismatch, ConcernsActivationsAndGradientsOfOneWay) {
  // Two ranks in a loop of four stages: rank 1 receives inputs and gradients from rank 0.
  const Checked checked = check_text(
      "capo 1\nplacement loop\n"
      "rank 0: F1.0 send-F1.0 recv-F2.0 F2.0 send-F2.0 recv-B2.0 B2.0 send-B2.0 F1.1 send-F1.1 "
      "recv-B1.0 B1.0 recv-F2.1 F2.1 send-F2.1 recv-B2.1 B2.1 send-B2.1 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 send-F1.0 recv-F2.0 F2.0 B2.0 send-B2.0 recv-F1.1 F1.1 recv-B1.0 "
      "B1.0 "
      "send-B1.0 send-F1.1 recv-F2.1 F2.1 B2.1 send-B2.1 recv-B1.1 B1.1 send-B1.1\n");
  EXPECT_EQ(checked.findings(), Findings{"T08@7"});
}

TEST(MessageMismatch, SaysWhatWasAddedByTheNameOfWhatItCarries) {
  const std::string orders =
      "capo 1\nplacement loop\nrank 0: F1 F1 F2 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n"
      "rank 1: F1 F1 F2 B2 F2 B2 F1 B1 F1 B1 F2 B2 F2 B2 B1 B1\n";
  const Checked checked = check_in({.environment = {.p2p = MegatronCalls::Batch}}, orders);
  ASSERT_EQ(checked.findings(), (Findings{"T08@7", "T08@5"}));
  EXPECT_EQ(checked.first().witness.tasks,
            (std::vector<WitnessEntry>{{1, 7, "send-B1", "send-B(c1,m0)"},
                                       {0, 8, "recv-F2", "recv-F(c2,m2)"}}));
  EXPECT_TRUE(check_in({.environment = {.p2p = MegatronCalls::Overlap}}, orders).accepted());
}

TEST(MessageMismatch, LeavesOutWhatHasNoOtherEnd) {
  EXPECT_EQ(check_csv("0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")
                .findings(),
            Findings{"T04@0"});
}

TEST(MessageMismatch, JudgesTheReplayOrders) {
  const Checked checked = check_text(
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
      "rank 0 replay: F1.1 send-F1.1 F1.0 send-F1.0 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 send-B1.0 B1.1 send-B1.1\n");
  EXPECT_EQ(checked.findings(), Findings{"T08@1"});
}

}  // namespace
}  // namespace capo
