#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

CollectiveGroup experts(std::vector<std::int32_t> members) {
  return {.name = "ep",
          .members = std::move(members),
          .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                      Kind::CombineBackward}};
}

Checked check_group(const CollectiveGroup& group, const std::string& text) {
  return check_in({.groups = {group}}, text);
}

TEST(CollectiveOrder, ShowsWhatMeetsWhat) {
  const Checked checked = check_group(experts({0, 1}),
                                      "capo 1\n"
                                      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                                      "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"T10@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`combine-F1.0` at index 1 of rank 1 meets `dispatch-F1.0` of rank 0: the members of "
            "group ep do not perform the same collectives in the same order");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{65, 12}, ""}, {{20, 13}, "performed at the same point"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "give all members of the group the same sequence of collectives"}));
  EXPECT_EQ(finding.family, Family::Transfers);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Mismatch);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 1, "dispatch-F1.0", "dispatch-F(c1,m0)"},
                                        {1, 1, "combine-F1.0", "combine-F(c1,m0)"}}));
}

TEST(CollectiveOrder, AcceptsTheSameSequence) {
  EXPECT_TRUE(check_group(experts({0, 1}),
                          "capo 1\n"
                          "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                          "rank 1: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n")
                  .accepted());
}

TEST(CollectiveOrder, ConcernsMembersOnly) {
  const std::string text =
      "capo 1\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
      "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"
      "rank 2: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n";
  EXPECT_TRUE(check_group(experts({0, 2}), text).accepted());
  EXPECT_EQ(check_group(experts({1, 2}), text).findings(), Findings{"T10@1"});
  EXPECT_TRUE(check_in({}, text).accepted()) << "no order says who belongs together";
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

TEST(CollectiveOrder, ShowsWhatHasNoPartner) {
  const Checked checked = check_group(experts({0, 1}),
                                      "capo 1\n"
                                      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                                      "rank 1: F1.0 dispatch-F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"T10@2"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`combine-F1.0` at index 2 of rank 0 has no partner: another member of group ep performs "
      "fewer collectives");
}

TEST(CollectiveOrder, ShowsTwoThatNothingOrders) {
  const std::string order = "F1.0 F1.1 dispatch-F1.1 combine-B1.0 B1.0 B1.1\n";
  const std::string text = "capo 1\nrank 0: " + order + "rank 1: " + order;
  EXPECT_TRUE(check_group(experts({0, 1}), text).accepted()) << "one stream orders them";
  CollectiveGroup group = experts({0, 1});
  group.streams = {{Kind::DispatchBackward, "comm2"}, {Kind::CombineBackward, "comm2"}};
  const Checked checked = check_group(group, text);
  ASSERT_EQ(checked.findings(), Findings{"T10@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "nothing orders `dispatch-F1.1` and `combine-B1.0` on rank 0, which run on the streams "
            "comm and comm2: the members of group ep may perform them either way round");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{39, 12}, "may start first"}, {{25, 13}, "or this"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "give them one stream, or an event from the one to the other"}));
}

TEST(CollectiveOrder, JudgesTheReplayOrdersTogether) {
  const std::string text =
      "capo 1\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
      "rank 1: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n";
  EXPECT_EQ(
      check_group(experts({0, 1}), text + "rank 1 replay: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n")
          .findings(),
      Findings{"T10@1"});
}

TEST(CollectiveOrder, OfCaptureOrdersIsReportedOnce) {
  EXPECT_EQ(check_group(experts({0, 1}),
                        "capo 1\n"
                        "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                        "rank 1: F1.0 combine-F1.0 dispatch-F1.0 B1.0\n"
                        "rank 2: F1.0 B1.0\nrank 2 replay: F1.0 B1.0\n")
                .findings(),
            Findings{"T10@1"});
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
  EXPECT_EQ(checked.findings(), (Findings{"T10@1", "T10@1"}));
}

TEST(CollectiveOrder, IsSaidBesideATransferThatIsMissing) {
  const Checked checked = check_in({.groups = {experts({0, 1})}},
                                   "capo 1\nplacement chain\n"
                                   "rank 0: F1.0 dispatch-F1.0 send-F1.0 recv-B1.0 B1.0\n"
                                   "rank 1: F1.0 combine-F1.0 B1.0 send-B1.0\n");
  const Findings found = checked.findings();
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
  const Findings once = check_group(group, order).findings();
  ASSERT_EQ(once.size(), 1u);
  const Findings again =
      check_group(group, order + "rank 2 replay: F1.0 F1.1 B1.0 B1.1\n").findings();
  EXPECT_EQ(std::count(again.begin(), again.end(), once.front()), 1);
}

}  // namespace
}  // namespace capo
