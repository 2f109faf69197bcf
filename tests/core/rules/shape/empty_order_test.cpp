#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(EmptyOrder, HasNoPlaceToPointAt) {
  const Checked checked = check_te("[]");
  ASSERT_EQ(checked.findings(), Findings{"S06@-"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "the order is empty");
  EXPECT_TRUE(finding.labels.empty());
  EXPECT_TRUE(finding.help.edits.empty());
}

TEST(EmptyOrder, PointsAtTheFirstEntryOfAnOrderWithoutForwards) {
  const Checked checked = check_te("[-1.5, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S06@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "the order has no forward");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{1, 4}, ""}}));
}

TEST(EmptyOrder, NamesTheRankThatIsEmpty) {
  const Checked checked = check_text("capo 1\nrank 0: F1 B1\nrank 1:\nrank 2: B1\n");
  ASSERT_EQ(checked.findings(), (Findings{"S06@-", "S06@0"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message, "the order of rank 1 is empty");
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).message, "the order of rank 2 has no forward");
}

TEST(EmptyOrder, JudgesEveryForm) {
  EXPECT_EQ(check_text(R"({"order": []})").findings(), Findings{"S06@-"});
  EXPECT_EQ(check_text(R"({"ranks": [{"order": ["B1"]}]})").findings(), Findings{"S06@0"});
  EXPECT_EQ(check_csv("0F0,0B0\n\n1F0,1B0\n").findings(), Findings{"S06@-"})
      << "a blank line is a rank";
  EXPECT_EQ(check_csv("0SEND_F0\n").findings(), Findings{"S06@0"}) << "a transfer is no forward";
}

TEST(EmptyOrder, JudgesTheReplayOrderByItself) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: B1\n").findings(), Findings{"S06@0"});
}

TEST(EmptyOrder, AcceptsOneForwardAndItsBackward) {
  EXPECT_TRUE(check_te("[1, -1]").accepted());
}

TEST(EmptyOrder, AllowsTheRankThatIsDeclaredToHoldNothing) {
  EXPECT_TRUE(check_text("capo 1\nrank 1 chunks 0\nrank 0: F1 B1\nrank 1:\n").accepted());
  EXPECT_TRUE(check_csv("0F0,0B0\n\n", {.stage_to_rank = {{0}}}).accepted());
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0:\n").findings(), Findings{"S06@-"})
      << "one chunk is some";
}

TEST(EmptyOrder, AllowsSuchARankIdleSlotsAndNothingElse) {
  EXPECT_TRUE(check_csv("0F0,0B0\n,\n", {.stage_to_rank = {{0}}}).accepted());
  EXPECT_EQ(check_text("capo 1\nrank 1 chunks 0\nrank 0: F1 B1\nrank 1: B1\n").findings(),
            Findings{"S06@0"});
}

TEST(EmptyOrder, WritesTheSmallestOrderDownWhereTheNotationIsKnown) {
  const std::string smallest = "the smallest order is one forward and its backward";
  EXPECT_EQ(check_te("[]").result.diagnostics.kept().at(0).help.text, smallest + ", `[1, -1]`");
  EXPECT_EQ(check_text("capo 1\nrank 0:\n").result.diagnostics.kept().at(0).help.text, smallest);
}

TEST(EmptyOrder, IsSilentWhereAForwardMayHideAmongUnreadableEntries) {
  EXPECT_EQ(check_te("[nan]").findings(), Findings{"S01@0"});
  EXPECT_EQ(check_te("[1.0, -1]").findings(), Findings{"S03@0"});
}

TEST(EmptyOrder, LeavesAChunkWithoutForwardsToTheCounts) {
  EXPECT_EQ(check_te("[1, -1, -2]").findings(), Findings{"S14@2"});
}

TEST(EmptyOrder, ConcernsAListOfNoChunksToo) {
  EXPECT_EQ(check_te("[]", {.layers = {.form = Layers::Form::List, .values = {}}}).findings(),
            Findings{"S06@-"});
}

TEST(EmptyOrder, SparesARankThatIsDeclaredToHaveNoChunks) {
  EXPECT_TRUE(check_text("capo 1\nranks 2\nrank 0: F1 B1\nrank 1 chunks 0\nrank 1:\n").accepted());
}

}  // namespace
}  // namespace capo
