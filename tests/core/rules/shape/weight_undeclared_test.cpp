#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(WeightUndeclared, NamesTheEntryAndTheChunk) {
  const Checked checked = check_te("[1, -1, -1.5]", {.delayed = DelayedChunks{}});
  ASSERT_EQ(checked.findings(), Findings{"S17@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`-1.5` at index 2 is a weight gradient of chunk 1, which does not delay its weight "
            "gradient");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 4}, ""}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "remove it, or declare that chunk 1 delays its weight gradient"}));
}

TEST(WeightUndeclared, GoesByTheDeclarationOfTheChunk) {
  const std::string text = "[1, 2, -2, -2.5, -1, -1.5]";
  EXPECT_EQ(check_te(text, {.delayed = DelayedChunks{.chunks = {2}}}).findings(),
            Findings{"S17@5"});
  EXPECT_EQ(check_te(text, {.need_wgrad = {{true, false}}}).findings(), Findings{"S17@3"});
  EXPECT_TRUE(check_te(text, {.need_wgrad = {{true, true}}}).accepted());
}

TEST(WeightUndeclared, FindsNothingWhereNothingIsDeclared) {
  EXPECT_TRUE(check_te("[1, -1, -1.5]").accepted());
  EXPECT_TRUE(check_csv("0F0,0I0,0W0\n").accepted()) << "a table cannot declare it";
}

TEST(WeightUndeclared, GoesByTheRank) {
  EXPECT_EQ(
      check_text("capo 1\ndelayed all\nrank 1 delayed none\nrank 0: F1 B1 W1\nrank 1: F1 B1 W1\n")
          .findings(),
      Findings{"S17@2"});
}

TEST(WeightUndeclared, HoldsTheReplayOrderToWhatTheCaptureOrderDelays) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 W1\n").findings(),
            Findings{"S17@2"});
}

TEST(WeightUndeclared, ConcernsNamedMicrobatchesAlike) {
  EXPECT_EQ(check_text("capo 1\ndelayed none\nrank 0: F1.0 B1.0 W1.0\n").findings(),
            Findings{"S17@2"});
}

TEST(WeightUndeclared, FindsAnInputHalfInAChunkThatSplitsEveryBackward) {
  const Checked checked = check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 I1.0 W1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"S17@2"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`I1.0` at index 2 splits off an input gradient, but every backward of chunk 1 is one");
  EXPECT_TRUE(check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 W1.0\n").accepted());
}

TEST(WeightUndeclared, AllowsBothHalvesInAMixedChunk) {
  EXPECT_TRUE(check_text("capo 1\nmixed 1\nrank 0: F1.0 I1.0 W1.0 F1.1 B1.1\n").accepted());
}

TEST(WeightUndeclared, SparesSuchAnEntryWhatItsOrderWouldBreak) {
  EXPECT_EQ(check_te("[1, -1.5, -1]", {.delayed = DelayedChunks{}}).findings(), Findings{"S17@1"});
  EXPECT_EQ(check_text("capo 1\ndelayed none\nrank 0: F1.0 W1.0 B1.0\n").findings(),
            Findings{"S17@1"});
}

TEST(WeightUndeclared, LeavesAChunkThatTheRankDoesNotHaveToUnknownChunk) {
  EXPECT_EQ(check_te("[1, -1, -9.5]", {.delayed = DelayedChunks{}}).findings(), Findings{"S12@2"});
}

TEST(WeightUndeclared, ConcernsAnInputHalf) {
  const Checked checked =
      check_text("capo 1\nchunks 2\nmixed 2\nrank 0: F1.0 F2.0 I2.0 W2.0 I1.0 W1.0\n");
  ASSERT_FALSE(checked.accepted());
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`I1.0` at index 4 is an input gradient of chunk 1, which does not delay its weight "
            "gradient");
}

}  // namespace
}  // namespace capo
