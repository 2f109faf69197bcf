#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kByLayers = "[1, 2, 1, 2, -2, -1, -2, -1]";

Checked check_layers(std::vector<std::int32_t> model_chunks, const std::string& text,
                     PlanKind plan = PlanKind::Te) {
  return check_in({.plan = {.kind = plan, .model_chunks = std::move(model_chunks)}}, text);
}

constexpr const char* kHead =
    "capo 1\nplacement chain\n"
    "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 F1.2 send-F1.2 recv-B1.0 B1.0 recv-B1.1 B1.1 recv-B1.2 "
    "B1.2\n"
    "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 recv-F1.2 F1.2 ";

Checked check_sends(const std::string& backwards, PlanKind plan = PlanKind::Te) {
  return check_in({.plan = {.kind = plan}}, kHead + backwards + "\n");
}

TEST(P2pWindow, ShowsWhatOverwritesBeforeTheNextModelChunkIsOver) {
  const Checked checked =
      check_layers({1, 2}, "[1, 2, 3, 1, 2, 3, -3, -2, -3, 1, -2, -1, 2, 3, -1, -3, -2, -1]");
  ASSERT_EQ(checked.findings(), (Findings{"B04@7", "B04@14"}));
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "the grad input of chunk 2, microbatch 0 may be overwritten by `1` at index 9, and its "
            "send is over for certain only at the end of `-2` at index 10");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{34, 2}, "the send is over here"},
                                {{31, 1}, "its memory goes to the output of chunk 1, microbatch 2"},
                                {{23, 2}, "it is written here"}}));
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{
          {.text = "TransformerEngine frees a grad input when the next backward of any chunk is "
                   "captured; which block is taken then is up to PyTorch's allocator, and "
                   "taken here is the one freed last (docs/model.md)"}}));
  EXPECT_EQ(finding.help, (Help{.text = "wait for the send before `1` at index 9"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{
                {0, 7, "-2", "B(c2,m0)"}, {0, 9, "1", "F(c1,m2)"}, {0, 10, "-2", "B(c2,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(P2pWindow, CountsTheGraphAtWhoseEndTheSendIsOver) {
  const Checked checked = check_layers({2}, kByLayers);
  ASSERT_EQ(checked.findings(), Findings{"B04@5"}) << "and no race";
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "the grad input of chunk 1, microbatch 0 may be overwritten by `-1` at index 7, and its "
      "send is over for certain only at the end of that");
}

TEST(P2pWindow, IsNoneWhereChunksAreThoseOfTheModel) {
  EXPECT_TRUE(check_layers({1, 1}, kByLayers).findings().empty());
  EXPECT_TRUE(check_layers({}, kByLayers).findings().empty()) << "nothing is said of sends";
}

TEST(P2pWindow, IsNoneWhereOneGraphHoldsAllLayers) {
  EXPECT_TRUE(
      check_layers({1}, "capo 1\nlayers 3\nrank 0: F1 F1 F1 B1 B1 B1\n").findings().empty());
}

TEST(P2pWindow, HappensInTheOrderOfPullRequest2376) {
  const std::string order =
      "1 1 1 1 2 3 2 -3 3 -2 2 -3 3 -2 2 -3 3 -2 1 -3 -2 1 -1 1 -1 1 -1 2 -1 3 2 -3 3 -2 2 -3 3 -2 "
      "2 -3 3 -2 -3 -2 -1 -1 -1 -1";
  EXPECT_FALSE(check_layers({1, 2}, order).accepted());
  EXPECT_TRUE(check_layers({1, 1, 1}, order).accepted());
}

TEST(P2pWindow, LooksAtSendsThatComeLate) {
  const Checked checked = check_sends("B1.0 B1.1 B1.2 send-B1.0 send-B1.1 send-B1.2");
  ASSERT_EQ(checked.findings(), Findings{"B04@6"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`send-B1.0` at index 9 of rank 1 reads the grad input of chunk 1, microbatch 0, which "
            "`B1.2` at index 8 of rank 1 may have overwritten");
  EXPECT_EQ(finding.labels.at(0).text, "it is sent here");
  EXPECT_EQ(
      finding.help,
      (Help{.text = "send it right behind `B1.0` at index 6 of rank 1, and let `B1.2` at index "
                    "8 of rank 1 wait for that"}));
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{1, 6, "B1.0", "B(c1,m0)"},
                                        {1, 8, "B1.2", "B(c1,m2)"},
                                        {1, 9, "send-B1.0", "send-B(c1,m0)"}}));
}

TEST(P2pWindow, LeavesSendsThatNobodyWaitsForToSlotRace) {
  EXPECT_EQ(check_sends("B1.0 send-B1.0 B1.1 send-B1.1 B1.2 send-B1.2").findings(),
            Findings{"E01@6"});
}

TEST(P2pWindow, AcceptsSendsThatAreLateButInTime) {
  EXPECT_TRUE(check_in({.plan = {.kind = PlanKind::Te}},
                       "capo 1\nplacement chain\n"
                       "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                       "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 B1.1 send-B1.0 send-B1.1\n")
                  .findings()
                  .empty());
}

TEST(P2pWindow, WithoutAPlanIsNotLookedFor) {
  EXPECT_TRUE(check_in({.plan = {.model_chunks = {2}}}, kByLayers).findings().empty());
}

TEST(P2pWindow, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_layers({2}, kByLayers, PlanKind::Safe).findings().empty());
  EXPECT_TRUE(
      check_sends("B1.0 B1.1 B1.2 send-B1.0 send-B1.1 send-B1.2", PlanKind::Safe).accepted());
}

TEST(P2pWindow, LooksAtEveryRank) {
  const Checked checked = check_layers({2},
                                       "capo 1\nchunks 2\n"
                                       "rank 0: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n"
                                       "rank 1: F1.0 F2.0 F1.1 F2.1 B2.1 B1.1 B2.0 B1.0\n");
  ASSERT_EQ(checked.findings(), (Findings{"B04@5", "B04@5"}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(1).message,
      "the grad input of chunk 1, microbatch 1 may be overwritten by `B1.0` at index 7 of rank "
      "1, and its send is over for certain only at the end of that");
}

}  // namespace
}  // namespace capo
