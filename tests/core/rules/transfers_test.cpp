// The rules of core/rules/transfers.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::Found;
using testing_support::labels;
using testing_support::says;
using testing_support::shows;
using testing_support::stuck;

TEST(TransferTwice, StandsHereAndNotThere) {
  const std::string text = "capo 1\nplacement chain\nrank 0: F1 send-F1 recv-B1 B1\nrank 1: ";
  const std::string capture = "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n";
  expect_findings({
      {"ShowsBoth", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1RECV_F0,1B0,1SEND_B0\n"),
       "T01@0", shows("error entries: 1:0 1RECV_F0 recv-F(c1,m0), 1:2 1RECV_F0 recv-F(c1,m0)")},
      {"ConcernsEveryKindOfTransfer",
       check_csv("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T01@1"},
      {"", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1SEND_B0\n"), "T01@3"},
      {"", check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T01@2"},
      {"ReportsEachTimeButTheFirst",
       check_csv("0F0,0SEND_F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
       "T01@1 T01@1"},
      {"AcceptsEachMicrobatchOnce",
       check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")},
      {"CountsWhereMicrobatchesAreCounted", check_text(text + "recv-F1 F1 B1 send-B1\n")},
      {"", check_text(text + "recv-F1 F1 B1 send-B1 send-B1\n"), "T02@4",
       because("the second one is that of a microbatch that there is not")},
      {"JudgesTheReplayOrderOnceAndTheCaptureOrderOnce",
       check_text(capture + "rank 0 replay: F1.0 send-F1.0 send-F1.0 recv-B1.0 B1.0\n"
                            "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"),
       "T01@1",
       says("`send-F1.0` at index 2 of rank 0's replay order is the same transfer a second time")},
      {"",
       check_text(capture + "rank 0 replay: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                            "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 send-B1.0\n"),
       "T01@3"},
      {"LeavesComputationsToRepeatedAction",
       check_csv("0F0,0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "S20@0"},
  });
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

TEST(TransferNowhere, StandsHereAndNotThere) {
  const std::string ranks =
      "rank 0: F1.0 send-F1.0 recv-F2.0 F2.0 B2.0 send-B2.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 F2.0 send-F2.0 recv-B2.0 B2.0 B1.0 send-B1.0\n";
  const std::string table = "0F0,0SEND_F0,0RECV_B0,0B0,0SEND_F1\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  expect_findings({
      {"ShowsATransferAtTheEndOfTheModel",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0\n"), "T02@2",
       shows("error entries: 1:2 1SEND_F0 send-F(c1,m0)"), labels("39+8"), stuck()},
      {"ConcernsStagesOfOneRank", check_csv("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n"), "T02@1 T02@2"},
      {"GoesByThePlacement", check_text("capo 1\nplacement v\n" + ranks)},
      {"", check_text("capo 1\nplacement loop\n" + ranks), "T04@2 T05@4 T03@5 T05@2 T02@3 T02@4",
       fails()},
      {"ConcernsAMicrobatchThatTheStepDoesNotHave", check_csv(table), "T02@4"},
      {"", check_csv(table, {.microbatches = 1}), "S19@4",
       because("where it is declared, microbatch-out-of-range says so")},
      {"IsOneFindingForOneTransfer",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B1\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T02@4"},
      {"AsksNothingOfChunksThatAreNotWired", check_text("capo 1\nrank 0: F1.0 send-F1.0 B1.0\n")},
      {"JudgesTheReplayOrderOnceAndTheCaptureOrderOnce",
       check_text(text + "rank 1 replay: recv-F1.0 F1.0 send-F1.0 B1.0 send-B1.0\n"), "T02@2",
       says("`send-F1.0` at index 2 of rank 1's replay order has no other end: stage 1 is the "
            "last")},
      {"",
       check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0\n"
                  "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                  "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n"),
       "T02@4"},
      {"ConcernsAReplayThatAloneTransfers",
       check_text("capo 1\nplacement loop\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                  "rank 0 replay: F1.0 send-F1.0 F2.0 B2.0 B1.0\n"),
       "T02@1"},
      {"OfAMicrobatchBeyondTheStepStaysOnItsRankToo",
       check_csv("0F0,0SEND_F7,1RECV_F7,1F0,1B0,0B0\n"), "T02@1 T02@2"},
  });
}

TEST(TransferNowhere, OfARankThatReplaysWhatItCapturesIsSaidOnce) {
  const std::string order =
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0 send-F1.1\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  const Found once = check_text(order).findings();
  EXPECT_EQ(once, Found{"T02@4"});
  EXPECT_EQ(check_text(order + "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n").findings(), once);
}

constexpr const char* kLast = "1RECV_F0,1F0,1B0,1SEND_B0\n";

TEST(SendWithoutReceive, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsTheSendAndTheReader", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
       "T03@1", shows("error entries: 0:1 0SEND_F0 send-F(c1,m0)"), stuck()},
      {"ConcernsGradients", check_csv("0F0,0SEND_F0,0B0\n" + std::string(kLast)), "T03@3",
       says("`1SEND_B0` at index 3 of rank 1 is never received: there is no `0RECV_B0` on rank 0")},
      {"IsAFaultOfBufferedSendsToo",
       check_in({.environment = {.transfers = TransferMode::Buffered}},
                "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
       "T03@1"},
      {"GoesByTheMicrobatch",
       check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
       "T03@3"},
      {"ReportsEverySend",
       check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
       "T03@1 T03@3"},
      {"AcceptsWhereBothAreThere", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n" + std::string(kLast))},
  });
}

TEST(SendWithoutReceive, JudgesCaptureAndReplayEachWithTheirOtherEnd) {
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\nrank 1: ";
  const Checked replay = check_text(text +
                                    "recv-F1.0 F1.0 B1.0 send-B1.0\n"
                                    "rank 1 replay: F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(replay.findings(), Found{"T03@1"});
  const Checked both = check_text(text +
                                  "F1.0 B1.0 send-B1.0\n"
                                  "rank 1 replay: F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(both.findings(), (Found{"T03@1", "T03@1"}));
  EXPECT_NE(both.first().message, both.result.diagnostics.kept().at(1).message);
}

TEST(SendWithoutReceive, OfCaptureOrdersIsReportedOnce) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n").findings().size(), 1u);
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                       "rank 1: F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0\n"
                       "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                       "rank 2 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n")
                .findings(),
            Found{"T03@1"});
}

TEST(ReceiveWithoutSend, StandsHereAndNotThere) {
  const std::string text =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 0 replay: F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  expect_findings({
      {"ShowsTheReceive", check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T04@0",
       shows("error entries: 1:0 1RECV_F0 recv-F(c1,m0)"), labels("17+8"), stuck()},
      {"ConcernsGradientsAndEveryRank", check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n"),
       "T04@2"},
      {"", check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n"), "T04@1 T04@0"},
      {"GoesByTheMicrobatch",
       check_csv("0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
       "T04@0", because("the others are not mixed up by it")},
      {"SpeaksTheFormOfTheInput",
       check_text("{\"placement\": \"chain\", \"microbatches\": 1, \"ranks\": ["
                  "{\"order\": [\"F1.0\", \"recv-B1.0\", \"B1.0\"]},"
                  "{\"order\": [\"recv-F1.0\", \"F1.0\", \"B1.0\", \"send-B1.0\"]}]}"),
       "T04@0",
       says("`recv-F1.0` at index 0 of rank 1 waits for ever: there is no `send-F1.0` on rank 0")},
      {"JudgesCaptureAndReplayEachWithTheirOtherEnd", check_text(text), "T04@0"},
      {"AcceptsWhereBothAreThere",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n")},
  });
}

TEST(InputNotReceived, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsTheReaderAndBothEndsThatAreMissing", check_csv("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
       "T05@0", shows("error entries: 1:0 1F0 F(c1,m0)"), labels("17+3"), stuck()},
      {"ConcernsGradients", check_csv("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n"), "T05@2"},
      {"ConcernsTheInputHalfAndNotTheWeights",
       check_csv("0F0,0SEND_F0,0I0,0W0\n1RECV_F0,1F0,1I0,1W0\n"), "T05@2"},
      {"", check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n")},
      {"GoesByTheMicrobatch",
       check_csv("0F0,0SEND_F0,0F1,0RECV_B0,0B0,0B1\n"
                 "1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1\n"),
       "T05@5 T05@2"},
      {"NeedsNoTransferOnOneRank",
       check_csv("0F0,1F0,1SEND_F0,1RECV_B0,1B0,0B0\n2RECV_F0,2F0,2B0,2SEND_B0\n")},
      {"DoesNotOccurWhereNoTransferIsWritten", check_csv("0F0,0B0\n1F0,1B0\n")},
      {"LeavesOneMissingEndToTheOtherOne",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"), "T03@1"},
      {"", check_csv("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T04@0"},
      {"JudgesTheReplayOrders",
       check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                  "rank 0 replay: F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                  "rank 1 replay: F1.0 B1.0 send-B1.0\n"),
       "T05@0"},
  });
}

TEST(SendTooEarly, StandsHereAndNotThere) {
  const std::string rank1 = "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n";
  expect_findings({
      {"ShowsTheSendAndWhatMakesItsMessage",
       check_csv("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T06@0",
       shows("error entries: 0:0 0SEND_F0 send-F(c1,m0), 0:1 0F0 F(c1,m0)"), stuck()},
      {"ConcernsGradientsAndTheInputHalf",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n"), "T06@2"},
      {"", check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n"), "T06@2"},
      {"", check_csv("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1W0,1SEND_B0\n")},
      {"AllowsOtherComputationsBetween",
       check_csv("0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")},
      {"IsBeforeACompositeThatMakesItsMessage",
       check_csv("0F0,0SEND_F0,0RECV_B0,0SEND_F1,(0F1;0B0)OVERLAP_F_B,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"),
       "T06@3"},
      {"IsNoDeadlockAsWell",
       check_csv("0SEND_F0,0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"),
       "T06@0", because("a deadlock shows when this is cured")},
      {"JudgesTheReplayOrderOnceAndTheCaptureOrderOnce",
       check_text("capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                  "rank 0 replay: send-F1.0 F1.0 recv-B1.0 B1.0\n" +
                  rank1),
       "T06@0"},
      {"",
       check_text("capo 1\nplacement chain\nrank 0: send-F1.0 F1.0 recv-B1.0 B1.0\n" + rank1 +
                  "rank 1 replay: recv-F1.0 F1.0 B1.0 send-B1.0\n"),
       "T06@0"},
  });
}

TEST(ReceiveTooLate, StandsHereAndNotThere) {
  const std::string rank0 = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n";
  const std::string rank0_judges_the_replay_order_once_and_the_capture_order_once =
      "capo 1\nplacement chain\nrank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n";
  expect_findings({
      {"ShowsTheReceiveAndItsReader",
       check_csv("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n"), "T07@1",
       shows("error entries: 1:1 1RECV_F0 recv-F(c1,m0), 1:0 1F0 F(c1,m0)"), stuck()},
      {"ConcernsGradientsAndTheInputHalf",
       check_csv("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "T07@3"},
      {"", check_csv("0F0,0SEND_F0,0I0,0RECV_B0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n"), "T07@3"},
      {"AllowsReceivesFarAhead",
       check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1\n"
                 "1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")},
      {"IsBehindACompositeThatReadsIt",
       check_csv(rank0 + "1RECV_F0,1F0,(1F1;1B0)OVERLAP_F_B,1RECV_F1,1SEND_B0,1B1,1SEND_B1\n"),
       "T07@3"},
      {"", check_csv(rank0 + "1RECV_F0,1F0,1RECV_F1,(1F1;1B0)OVERLAP_F_B,1SEND_B0,1B1,1SEND_B1\n")},
      {"JudgesTheReplayOrderOnceAndTheCaptureOrderOnce",
       check_text(rank0_judges_the_replay_order_once_and_the_capture_order_once +
                  "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n"
                  "rank 1 replay: F1.0 recv-F1.0 B1.0 send-B1.0\n"),
       "T07@1"},
      {"",
       check_text(rank0_judges_the_replay_order_once_and_the_capture_order_once +
                  "rank 0 replay: F1.0 send-F1.0 recv-B1.0 B1.0\n"
                  "rank 1: F1.0 recv-F1.0 B1.0 send-B1.0\n"),
       "T07@1"},
  });
}

constexpr const char* kTable =
    "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1\n";

TEST(MessageMismatch, DoesNotDependOnHowTransfersQueueUp) {
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      EXPECT_EQ(check_in({.environment = {.communicators = layout, .transfers = mode}}, kTable)
                    .findings(),
                Found{"T08@2"})
          << name_of(layout) << " " << name_of(mode);
    }
  }
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
  EXPECT_EQ(checked.findings(), Found{"T08@7"});
}

TEST(MessageMismatch, SaysWhatWasAddedByTheNameOfWhatItCarries) {
  const std::string orders =
      "capo 1\nplacement loop\nrank 0: F1 F1 F2 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n"
      "rank 1: F1 F1 F2 B2 F2 B2 F1 B1 F1 B1 F2 B2 F2 B2 B1 B1\n";
  const Checked checked = check_in({.environment = {.p2p = MegatronCalls::Batch}}, orders);
  ASSERT_EQ(checked.findings(), (Found{"T08@7", "T08@5"}));
  EXPECT_EQ(checked.first().witness.tasks,
            (std::vector<WitnessEntry>{{1, 7, "send-B1", "send-B(c1,m0)"},
                                       {0, 8, "recv-F2", "recv-F(c2,m2)"}}));
  EXPECT_TRUE(check_in({.environment = {.p2p = MegatronCalls::Overlap}}, orders).accepted());
}

TEST(MessageMismatch, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsTheReceiveAndTheSendThatItMeets", check_csv(kTable), "T08@2",
       shows("error mismatch: 0:2 0SEND_F0 send-F(c1,m0), 1:0 1RECV_F1 recv-F(c1,m1)")},
      {"IsOneFindingForEachDirectionBetweenTwoRanks",
       check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0RECV_B0,0B0,0B1\n"
                 "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
       "T08@5 T08@1"},
      {"DoesNotMindWhichOrderIfItIsOne",
       check_csv("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n")},
      {"LeavesOutWhatHasNoOtherEnd",
       check_csv("0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
       "T04@0"},
      {"JudgesTheReplayOrders",
       check_text("capo 1\nplacement chain\n"
                  "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                  "rank 0 replay: F1.1 send-F1.1 F1.0 send-F1.0 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                  "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 send-B1.0 B1.1 send-B1.1\n"),
       "T08@1"},
  });
}

}  // namespace
}  // namespace capo
