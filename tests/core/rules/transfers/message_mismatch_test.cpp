#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kTable =
    "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1\n";

TEST(MessageMismatch, ShowsTheReceiveAndTheSendThatItMeets) {
  const Checked checked = check_csv(kTable);
  ASSERT_EQ(checked.findings(), Findings{"T08@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "`1RECV_F1` at index 0 of rank 1 meets `0SEND_F0` of rank 0: messages between two ranks "
      "meet in the order in which they are issued");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{52, 8}, ""}, {{8, 8}, "this is sent in its stead"}}));
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{{.text = "where the two are of one size, nothing hangs and nothing is "
                                  "said: the wrong tensor is read"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "give the sends of rank 0 and the receives of rank 1 the same order"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Mismatch);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 2, "0SEND_F0", "send-F(c1,m0)"},
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
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`recv-F1.1` at index 7 of rank 1 meets `send-B2.0` of rank 0: messages between two ranks "
      "meet in the order in which they are issued");
}

TEST(MessageMismatch, SaysWhatWasAddedByTheNameOfWhatItCarries) {
  const std::string orders =
      "capo 1\nplacement loop\nrank 0: F1 F1 F2 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n"
      "rank 1: F1 F1 F2 B2 F2 B2 F1 B1 F1 B1 F2 B2 F2 B2 B1 B1\n";
  const Checked checked = check_in({.environment = {.p2p = MegatronCalls::Batch}}, orders);
  ASSERT_EQ(checked.findings(), (Findings{"T08@7", "T08@5"}));
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "the receive for `F2` at index 8 of rank 0 meets the send of `B1` (microbatch 0) of rank "
      "1: messages between two ranks meet in the order in which they are issued");
  EXPECT_EQ(finding.help.text,
            "Megatron makes these calls itself: single calls (--p2p overlap) meet as they should");
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{1, 7, "send-B1", "send-B(c1,m0)"},
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
