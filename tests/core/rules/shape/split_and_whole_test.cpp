#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(SplitAndWhole, ShowsBoth) {
  const Checked checked = check_csv("0F0,0B0,0I0,0W0\n");
  ASSERT_EQ(checked.findings(), Findings{"S22@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "microbatch 0 of stage 0 has a whole backward and a split one");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{8, 3}, "again"}, {{4, 3}, "run backward here already"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "keep the whole backward, or the input and weight halves"}));
}

TEST(SplitAndWhole, PointsAtTheLaterOfTheTwoWays) {
  const Checked checked = check_csv("0F0,0I0,0W0,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S22@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().labels.at(0).span, (Span{12, 3}));
}

TEST(SplitAndWhole, FindsAWeightHalfAlone) {
  EXPECT_EQ(check_csv("0F0,0B0,0W0\n").findings(), Findings{"S22@1"});
}

TEST(SplitAndWhole, NamesTheMicrobatchAndTheRank) {
  const Checked checked = check_text(
      "capo 1\nmixed 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.0 B1.0 F1.1 I1.1 W1.1 B1.1\n");
  ASSERT_EQ(checked.findings(), Findings{"S22@3"});
  EXPECT_TRUE(checked.result.diagnostics.kept().front().message.starts_with(
      "microbatch 1 of chunk 1 has a whole backward and a split one"));
  EXPECT_EQ(checked.result.diagnostics.kept().front().witness.tasks.at(0).rank, 1);
}

TEST(SplitAndWhole, LetsEachMicrobatchChoose) {
  EXPECT_TRUE(check_csv("0F0,0F1,0B0,0I1,0W1\n").accepted());
}

TEST(SplitAndWhole, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nmixed 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 B1.0 I1.0 W1.0\n")
                .findings(),
            Findings{"S22@1"});
}

TEST(SplitAndWhole, LeavesAWeightGradientThatIsNotDeclaredToWeightUndeclared) {
  EXPECT_EQ(check_text("capo 1\ndelayed none\nrank 0: F1.0 B1.0 W1.0\n").findings(),
            Findings{"S17@2"});
}

TEST(SplitAndWhole, HasNothingToSayWhereEveryBackwardIsAnInputHalf) {
  EXPECT_TRUE(check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 W1.0\n").accepted());
}

}  // namespace
}  // namespace capo
