// The rules of core/rules/deadlock.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::shows;
using testing_support::stuck;

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

// In a fused group only a send waits for data: a receive reads nothing of its own rank.
TEST(Deadlock, OfAGroupNamesTheMemberThatWaits) {
  const Checked checked =
      check_in({.groups = {{.name = "g", .members = {0, 1}, .actions = {Kind::DispatchForward}}}},
               "capo 1\nplacement chain\n"
               "rank 0: F1.0 dispatch-F1.0 (recv-B1.0 send-F1.0) B1.0\n"
               "rank 1: recv-F1.0 F1.0 dispatch-F1.0 B1.0 send-B1.0\n");
  ASSERT_EQ(checked.findings().size(), 1u);
  const auto& labels = checked.first().labels;
  const auto waits = std::count_if(labels.begin(), labels.end(), [&](const Label& label) {
    return checked.input.source.slice(label.span) == "send-F1.0";
  });
  EXPECT_EQ(waits, 1);
}

TEST(Deadlock, OfTwoReceiversIsOneEverywhere) {
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      const Checked checked = check_across(kBothReceive, layout, mode);
      EXPECT_EQ(checked.findings(), Found{"T09@3"});
      EXPECT_TRUE(checked.first().notes.empty());
    }
  }
}

TEST(Deadlock, GoesThroughComputationsWhereQueuesAreNarrow) {
  const Checked checked = check_across(kBothReceive, Communicators::PerEdge);
  std::vector<std::string> labels;
  for (const Label& label : checked.first().labels) labels.push_back(label.text);
  EXPECT_EQ(labels,
            (Found{"waits for `1SEND_B0` of rank 1", "is issued after `1B0`", "comes after `1F1`",
                   "needs `1RECV_F1`", "waits for `0SEND_F1` of rank 0", "is issued after `0B0`",
                   "needs `0RECV_B0`"}));
}

TEST(Deadlock, OfMegatronsCallsNamesTheTransfersByWhatTheyCarry) {
  const std::string four =
      "capo 1\nplacement loop\n"
      "rank 0: F1 F1 F1 F1 F2 F2 F2 F2 B2 B2 B2 B2 B1 B1 B1 B1\n"
      "rank 1: F1 F1 F1 F1 F2 F2 F2 F2 B2 B2 B2 B2 B1 B1 B1 B1\n"
      "rank 2: F1 F1 F1 F1 F2 F2 F2 B2 F2 B2 B2 B2 B1 B1 B1 B1\n"
      "rank 3: F1 F1 F1 F1 F2 B2 F2 B2 F2 B2 F2 B2 B1 B1 B1 B1\n";
  const Environment flush{.p2p = MegatronCalls::Flush};
  EXPECT_EQ(check_in({.environment = flush}, four).findings().size(), 1u);
  EXPECT_TRUE(check_in({.environment = {.communicators = Communicators::PerPair,
                                        .p2p = MegatronCalls::Flush}},
                       four)
                  .accepted());
  EXPECT_TRUE(check_in({.environment = {.p2p = MegatronCalls::Overlap}}, four).accepted());
}

TEST(Deadlock, StandsHereAndNotThere) {
  const std::string rank0 = "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n";
  const std::string fused0 =
      "rank 0: F1.0 send-F1.0 F1.1 (send-F1.1 recv-B1.0) B1.0 recv-B1.1 B1.1\n";
  const std::string rank1 = "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n";
  const std::string fused1 =
      "rank 1: recv-F1.0 F1.0 B1.0 (send-B1.0 recv-F1.1) F1.1 B1.1 send-B1.1\n";
  const std::string head = "capo 1\nplacement chain\n";
  const std::string text =
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 F1.1 recv-B1.0 send-F1.1 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n";
  expect_findings({
      {"ShowsTheCircleAndTheWaysOut", check_csv(kBothSend), "T09@3",
       shows("error waitcycle: 0:3 0SEND_F1 send-F(c1,m1), 1:4 1RECV_F1 recv-F(c1,m1), 1:3 "
             "1SEND_B0 send-B(c1,m0), 0:4 0RECV_B0 recv-B(c1,m0)"),
       stuck()},
      {"OfTwoSendersDependsOnQueuesAndOnRendezvous",
       check_across(kBothSend, Communicators::PerPair), "T09@3"},
      {"", check_across(kBothSend, Communicators::PerEdge)},
      {"", check_across(kBothSend, Communicators::PerRank, TransferMode::Buffered)},
      {"IsNoneWhereBothEndsComeAtOnePoint",
       check_csv("0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")},
      {"IsNoneWhereOneOfTheRanksFuses", check_text(head + rank0 + rank1), "T09@3"},
      {"", check_text(head + fused0 + rank1)},
      {"", check_text(head + rank0 + fused1)},
      {"", check_text(head + fused0 + fused1)},
      {"IsSaidOnlyWhereNothingElseExplainsTheWait",
       check_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"),
       "T03@1"},
      {"StandsBesideAMismatch",
       check_csv("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
                 "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"),
       "T09@3 T08@2"},
      {"JudgesTheReplayOrdersTogether", check_text(text)},
      {"",
       check_text(text +
                  "rank 0 replay: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"),
       "T09@3 Y01@3"},
      {"OfCaptureOrdersIsReportedOnce",
       check_text("capo 1\nplacement chain\n"
                  "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                  "rank 1: recv-F1.0 F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0 recv-F1.1 F1.1 "
                  "send-F1.1 recv-B1.1 B1.1 send-B1.1\n"
                  "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n"
                  "rank 2 replay: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n"),
       "T09@3"},
  });
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
  for (const Note& note : flushed.first().notes) {
    EXPECT_EQ(note.text.find("overlap"), std::string::npos) << note.text;
  }
  EXPECT_EQ(called(MegatronCalls::Overlap).result.finishes, false);
}

CollectiveGroup experts(std::vector<std::int32_t> members) {
  return {.name = "ep",
          .members = std::move(members),
          .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                      Kind::CombineBackward}};
}

Checked check_group(const CollectiveGroup& group, const std::string& text) {
  return check_in({.groups = {group}}, text);
}

TEST(CollectiveOrder, ConcernsActionsOfTheGroupOnly) {
  CollectiveGroup group = experts({0, 1});
  group.actions = {Kind::DispatchForward};
  EXPECT_TRUE(check_group(group,
                          "capo 1\n"
                          "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                          "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n")
                  .accepted());
}

TEST(CollectiveOrder, ShowsTwoThatNothingOrders) {
  const std::string order = "F1.0 F1.1 dispatch-F1.1 combine-B1.0 B1.0 B1.1\n";
  const std::string text = "capo 1\nrank 0: " + order + "rank 1: " + order;
  EXPECT_TRUE(check_group(experts({0, 1}), text).accepted()) << "one stream orders them";
  CollectiveGroup group = experts({0, 1});
  group.streams = {{Kind::DispatchBackward, "comm2"}, {Kind::CombineBackward, "comm2"}};
  EXPECT_EQ(check_group(group, text).findings(), Found{"T10@2"});
}

TEST(CollectiveOrder, StandsHereAndNotThere) {
  const std::string text =
      "capo 1\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
      "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"
      "rank 2: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n";
  const std::string text_judges_the_replay_orders_together =
      "capo 1\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
      "rank 1: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n";
  expect_findings({
      {"ShowsWhatMeetsWhat",
       check_group(experts({0, 1}),
                   "capo 1\n"
                   "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                   "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"),
       "T10@1",
       shows("error mismatch: 0:1 dispatch-F1.0 dispatch-F(c1,m0), 1:1 combine-F1.0 "
             "combine-F(c1,m0)")},
      {"AcceptsTheSameSequence", check_group(experts({0, 1}),
                                             "capo 1\n"
                                             "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                                             "rank 1: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n")},
      {"ConcernsMembersOnly", check_group(experts({0, 2}), text)},
      {"", check_group(experts({1, 2}), text), "T10@1"},
      {"", check_in({}, text), "", because("no order says who belongs together")},
      {"ShowsWhatHasNoPartner",
       check_group(experts({0, 1}),
                   "capo 1\n"
                   "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                   "rank 1: F1.0 dispatch-F1.0 B1.0\n"),
       "T10@2"},
      {"JudgesTheReplayOrdersTogether",
       check_group(experts({0, 1}), text_judges_the_replay_orders_together +
                                        "rank 1 replay: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"),
       "T10@1"},
      {"OfCaptureOrdersIsReportedOnce",
       check_group(experts({0, 1}),
                   "capo 1\n"
                   "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                   "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"
                   "rank 2: F1.0 B1.0\nrank 2 replay: F1.0 B1.0\n"),
       "T10@1"},
  });
}

TEST(CollectiveOrder, OfARankThatReplaysWhatItCapturesIsSaidOnce) {
  CollectiveGroup other = experts({2, 3});
  other.name = "other";
  const Checked checked = check_in({.groups = {experts({0, 1}), other}},
                                   "capo 1\n"
                                   "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                                   "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"
                                   "rank 2: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                                   "rank 3: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                                   "rank 3 replay: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n");
  EXPECT_EQ(checked.findings(), (Found{"T10@1", "T10@1"}));
}

TEST(CollectiveOrder, IsSaidBesideATransferThatIsMissing) {
  const Checked checked = check_in({.groups = {experts({0, 1})}},
                                   "capo 1\nplacement chain\n"
                                   "rank 0: F1.0 dispatch-F1.0 send-F1.0 recv-B1.0 B1.0\n"
                                   "rank 1: F1.0 combine-F1.0 B1.0 send-B1.0\n");
  const Found found = checked.findings();
  EXPECT_EQ(std::count(found.begin(), found.end(), "T10@1"), 1);
  EXPECT_GT(found.size(), 1u);
}

TEST(CollectiveOrder, NamesTheLayersThatMegatronTakesApart) {
  const std::string order =
      "capo 1\nmicrobatches 2\nlayers 1\nplacement loop\n"
      "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
      "rank 1: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n";
  std::string messages;
  for (const auto& actions : {std::vector{Kind::DispatchForward, Kind::DispatchBackward},
                              std::vector{Kind::CombineForward, Kind::CombineBackward},
                              std::vector{Kind::DispatchBackward, Kind::CombineForward},
                              std::vector{Kind::DispatchForward, Kind::CombineBackward}}) {
    const Checked checked =
        check_in({.environment = {.p2p = MegatronCalls::Batch, .ep_overlap = true},
                  .groups = {{.name = "ep", .members = {0, 1}, .actions = actions}}},
                 order);
    for (const Diagnostic& finding : checked.result.diagnostics.kept())
      messages += finding.message + "\n";
  }
  EXPECT_NE(messages.find("the dispatch of layer 1 of `B"), std::string::npos) << messages;
  EXPECT_NE(messages.find("the dispatch of layer 1 of `F"), std::string::npos) << messages;
  EXPECT_NE(messages.find("the combine of layer 1 of `F"), std::string::npos) << messages;
}

TEST(CollectiveOrder, OfARaceThatIsReplayedAsCapturedIsSaidOnce) {
  CollectiveGroup group = experts({0, 1});
  group.streams = {{Kind::DispatchBackward, "comm2"}, {Kind::CombineBackward, "comm2"}};
  const std::string order =
      "capo 1\nranks 3\nmicrobatches 2\n"
      "rank 0: F1.0 F1.1 dispatch-F1.1 combine-B1.0 B1.0 B1.1\n"
      "rank 1: F1.0 F1.1 dispatch-F1.1 combine-B1.0 B1.0 B1.1\n"
      "rank 2: F1.0 B1.0 F1.1 B1.1\n";
  const Found once = check_group(group, order).findings();
  ASSERT_EQ(once.size(), 1u);
  const Found again = check_group(group, order + "rank 2 replay: F1.0 F1.1 B1.0 B1.1\n").findings();
  EXPECT_EQ(std::count(again.begin(), again.end(), once.front()), 1);
}

}  // namespace
}  // namespace capo
