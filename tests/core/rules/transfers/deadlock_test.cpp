#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kBothSend =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
constexpr const char* kBothReceive =
    "0F0,0SEND_F0,0F1,0RECV_B0,0B0,0SEND_F1,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n";

Checked check_across(const std::string& text, Communicators layout,
                     TransferMode mode = TransferMode::Rendezvous) {
  return check_in({.environment = {.communicators = layout, .transfers = mode}}, text);
}

// Of a fused group, what waits for data is a send: a receive reads nothing of its own rank.
TEST(Deadlock, OfAGroupNamesTheMemberThatWaits) {
  const Checked checked =
      check_in({.groups = {{.name = "g", .members = {0, 1}, .actions = {Kind::DispatchForward}}}},
               "capo 1\nplacement chain\n"
               "rank 0: F1.0 dispatch-F1.0 (recv-B1.0 send-F1.0) B1.0\n"
               "rank 1: recv-F1.0 F1.0 dispatch-F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(checked.findings().size(), 1u);
  const auto& labels = checked.result.diagnostics.kept().front().labels;
  const auto waits = std::count_if(labels.begin(), labels.end(), [&](const Label& label) {
    return checked.input.source.slice(label.span) == "send-F1.0";
  });
  EXPECT_EQ(waits, 1);
}

TEST(Deadlock, ShowsTheCircleAndTheWaysOut) {
  const Checked checked = check_csv(kBothSend);
  ASSERT_EQ(checked.findings(), Findings{"T09@3"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "deadlock: ranks 0 and 1 wait for each other for ever");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{17, 8}, "ends only with `1RECV_F1` of rank 1"},
                                                {{78, 8}, "is queued behind `1SEND_B0`"},
                                                {{69, 8}, "ends only with `0RECV_B0` of rank 0"},
                                                {{26, 8}, "is queued behind `0SEND_F1`"}}));
  EXPECT_EQ(finding.notes,
            (std::vector<Note>{
                {.text = "with one communicator for each direction between two ranks it finishes"},
                {.text = "if sends were buffered it would finish"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "let the two ends of each transfer come at the same point of "
                          "both orders"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::WaitCycle);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 3, "0SEND_F1", "send-F(c1,m1)"},
                                        {1, 4, "1RECV_F1", "recv-F(c1,m1)"},
                                        {1, 3, "1SEND_B0", "send-B(c1,m0)"},
                                        {0, 4, "0RECV_B0", "recv-B(c1,m0)"}}));
  EXPECT_EQ(checked.result.finishes, false);
}

TEST(Deadlock, OfTwoSendersDependsOnQueuesAndOnRendezvous) {
  EXPECT_EQ(check_across(kBothSend, Communicators::PerPair).findings(), Findings{"T09@3"});
  EXPECT_TRUE(check_across(kBothSend, Communicators::PerEdge).accepted());
  EXPECT_TRUE(check_across(kBothSend, Communicators::PerRank, TransferMode::Buffered).accepted());
}

TEST(Deadlock, OfTwoReceiversIsOneEverywhere) {
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      const Checked checked = check_across(kBothReceive, layout, mode);
      EXPECT_EQ(checked.findings(), Findings{"T09@3"});
      EXPECT_TRUE(checked.result.diagnostics.kept().at(0).notes.empty());
    }
  }
}

TEST(Deadlock, GoesThroughComputationsWhereQueuesAreNarrow) {
  const Checked checked = check_across(kBothReceive, Communicators::PerEdge);
  std::vector<std::string> labels;
  for (const Label& label : checked.result.diagnostics.kept().at(0).labels)
    labels.push_back(label.text);
  EXPECT_EQ(labels,
            (Findings{"waits for `1SEND_B0` of rank 1", "is issued after `1B0`",
                      "comes after `1F1`", "needs `1RECV_F1`", "waits for `0SEND_F1` of rank 0",
                      "is issued after `0B0`", "needs `0RECV_B0`"}));
}

TEST(Deadlock, IsNoneWhereBothEndsComeAtOnePoint) {
  EXPECT_TRUE(check_csv("0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
                        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                  .accepted());
}

TEST(Deadlock, IsNoneWhereOneOfTheRanksFuses) {
  const std::string rank0 = "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n";
  const std::string fused0 =
      "rank 0: F1.0 send-F1.0 F1.1 (send-F1.1 recv-B1.0) B1.0 recv-B1.1 B1.1\n";
  const std::string rank1 = "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n";
  const std::string fused1 =
      "rank 1: recv-F1.0 F1.0 B1.0 (send-B1.0 recv-F1.1) F1.1 B1.1 send-B1.1\n";
  const std::string head = "capo 1\nplacement chain\n";
  EXPECT_EQ(check_text(head + rank0 + rank1).findings(), Findings{"T09@3"});
  EXPECT_TRUE(check_text(head + fused0 + rank1).accepted());
  EXPECT_TRUE(check_text(head + rank0 + fused1).accepted());
  EXPECT_TRUE(check_text(head + fused0 + fused1).accepted());
}

TEST(Deadlock, OfMegatronsCallsNamesTheTransfersByWhatTheyCarry) {
  const std::string four =
      "capo 1\nplacement loop\n"
      "rank 0: F1 F1 F1 F1 F2 F2 F2 F2 B2 B2 B2 B2 B1 B1 B1 B1\n"
      "rank 1: F1 F1 F1 F1 F2 F2 F2 F2 B2 B2 B2 B2 B1 B1 B1 B1\n"
      "rank 2: F1 F1 F1 F1 F2 F2 F2 B2 F2 B2 B2 B2 B1 B1 B1 B1\n"
      "rank 3: F1 F1 F1 F1 F2 B2 F2 B2 F2 B2 F2 B2 B1 B1 B1 B1\n";
  const Environment flush{.p2p = MegatronCalls::Flush};
  const Checked checked = check_in({.environment = flush}, four);
  ASSERT_EQ(checked.findings().size(), 1u);
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "deadlock: ranks 0, 1, 2 and 3 wait for each other for ever");
  EXPECT_EQ(finding.labels.at(0).text,
            "its receive waits for the send of `B2` (microbatch 1) of rank 1");
  EXPECT_EQ(finding.labels.at(1).text,
            "its send is queued behind the receive for `B2` (microbatch 2)");
  EXPECT_EQ(finding.notes,
            (std::vector<Note>{{.text = "with one communicator for each pair of ranks it finishes"},
                               {.text = "with --p2p overlap it finishes"}}));
  EXPECT_EQ(finding.help.text,
            "Megatron makes these calls itself: choose other communicators or other calls");
  EXPECT_TRUE(check_in({.environment = {.communicators = Communicators::PerPair,
                                        .p2p = MegatronCalls::Flush}},
                       four)
                  .accepted());
  EXPECT_TRUE(check_in({.environment = {.p2p = MegatronCalls::Overlap}}, four).accepted());
}

TEST(Deadlock, IsSaidOnlyWhereNothingElseExplainsTheWait) {
  EXPECT_EQ(check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                      "1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                .findings(),
            Findings{"T03@1"});
}

TEST(Deadlock, StandsBesideAMismatch) {
  const Checked checked = check_csv(
      "0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  EXPECT_EQ(checked.findings(), (Findings{"T09@3", "T08@2"}));
}

TEST(Deadlock, JudgesTheReplayOrdersTogether) {
  const std::string text =
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 F1.1 recv-B1.0 send-F1.1 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n";
  EXPECT_TRUE(check_text(text).accepted());
  const Checked checked = check_text(
      text + "rank 0 replay: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n");
  ASSERT_EQ(checked.findings(), Findings{"T09@3"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "deadlock when replayed: ranks 0 and 1 wait for each other for ever");
}

TEST(Deadlock, OfCaptureOrdersIsReportedOnce) {
  EXPECT_EQ(
      check_text("capo 1\nplacement chain\n"
                 "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                 "rank 1: recv-F1.0 F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0 recv-F1.1 F1.1 "
                 "send-F1.1 recv-B1.1 B1.1 send-B1.1\n"
                 "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n"
                 "rank 2 replay: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n")
          .findings(),
      Findings{"T09@3"});
}

// PP 3: the last two ranks run a pair before the third microbatch of their second chunk is there.
TEST(Deadlock, NamesNoOverlappedCallsWhereTheyWaitTooForEver) {
  const std::string order =
      "capo 1\nmicrobatches 3\nplacement loop\n"
      "rank 0: F1.0 F1.1 F1.2 F2.0 F2.1 F2.2 B2.0 B2.1 B2.2 B1.0 B1.1 B1.2\n"
      "rank 1: F1.0 F1.1 F1.2 F2.0 F2.1 B2.0 F2.2 B2.1 B2.2 B1.0 B1.1 B1.2\n"
      "rank 2: F1.0 F1.1 F1.2 F2.0 F2.1 B2.0 F2.2 B2.1 B2.2 B1.0 B1.1 B1.2\n";
  const auto called = [&](MegatronCalls calls) {
    return check_in({.environment = {.communicators = Communicators::PerPair, .p2p = calls}},
                    order);
  };
  const Checked flushed = called(MegatronCalls::Flush);
  ASSERT_EQ(flushed.findings().size(), 1u);
  for (const Note& note : flushed.result.diagnostics.kept().front().notes) {
    EXPECT_EQ(note.text.find("overlap"), std::string::npos) << note.text;
  }
  EXPECT_EQ(called(MegatronCalls::Overlap).result.finishes, false);
}

}  // namespace
}  // namespace capo
