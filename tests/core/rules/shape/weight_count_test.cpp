#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(WeightCount, PointsAtTheBackwardThatHasNoWeightGradient) {
  const Checked checked = check_te("[1, 1, -1, -1.5, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S16@4"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "chunk 1 has 2 backwards and only 1 weight gradient");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{17, 2}, "this backward has no weight gradient"}}));
  EXPECT_EQ(finding.help, (Help{.text = "add `-1.5` after it", .edits = {{{19, 0}, ", -1.5"}}}));
}

TEST(WeightCount, ItsEditCuresTheOrderInEveryTextForm) {
  for (const std::string text :
       {"[1, 1, -1, -1.5, -1]", "1 1 -1 -1.5 -1", "capo 1\nrank 0: F1 F1 B1 W1 B1\n",
        R"({"order": [1, 1, -1, -1.5, -1]})"}) {
    const Checked checked = check_text(text);
    const Edit& edit = checked.result.diagnostics.kept().at(0).help.edits.at(0);
    std::string cured = text;
    EXPECT_TRUE(
        check_text(cured.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted())
        << cured;
  }
}

TEST(WeightCount, NamesTheSurplusEntry) {
  const Checked checked = check_te("[1, 1, -1, -1.5, -1, -1.5, -1.5]");
  ASSERT_EQ(checked.findings(), Findings{"S16@6"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`-1.5` at index 6 is a weight gradient of chunk 1 without a backward: the "
            "chunk has 2 backwards and 3 weight gradients");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{27, 4}, "no backward is left for it"}}));
  EXPECT_EQ(finding.help, (Help{.text = "remove it, or add the backward that it belongs to"}));
}

TEST(WeightCount, HoldsADeclaredChunkWithoutAnyToTheDeclaration) {
  const Checked checked = check_te("[1, 2, -2, -2.5, -1]", {.delayed = DelayedChunks{.all = true}});
  ASSERT_EQ(checked.findings(), Findings{"S16@4"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 1 delays its weight gradient and has none");
  EXPECT_TRUE(check_te("[1, 2, -2, -2.5, -1]").accepted()) << "undeclared, chunk 1 does not delay";
  EXPECT_TRUE(
      check_te("[1, 2, -2, -2.5, -1]", {.delayed = DelayedChunks{.chunks = {2}}}).accepted());
}

TEST(WeightCount, NamesTheRank) {
  const Checked checked = check_text("capo 1\ndelayed all\nrank 0: F1 B1 W1\nrank 1: F1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S16@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 1 delays its weight gradient and has none on rank 1");
}

TEST(WeightCount, HoldsTheReplayOrderToWhatTheCaptureOrderDelays) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1 W1\nrank 0 replay: F1 B1\n").findings(),
            Findings{"S16@1"});
}

TEST(WeightCount, CountsWhatItDoesNotDescribe) {
  std::string text = "[";
  for (int chunk = 1; chunk <= 150; ++chunk) text += std::to_string(chunk) + " ";
  for (int chunk = 150; chunk >= 1; --chunk) text += "-" + std::to_string(chunk) + " ";
  const Checked checked = check_te(text + "]", {.delayed = DelayedChunks{.all = true}});
  EXPECT_EQ(checked.result.diagnostics.errors(), 150u);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), Diagnostics::kDefaultLimit);
}

TEST(WeightCount, AcceptsOneForEveryBackward) {
  EXPECT_TRUE(check_te("[1, 1, -1, -1, -1.5, -1.5]").accepted());
}

TEST(WeightCount, LeavesTheBackwardsToBackwardCountWhereTheWeightGradientsAreRight) {
  EXPECT_EQ(check_te("[1, 1, -1, -1.5, -1.5]", {.microbatches = 2}).findings(), Findings{"S15@1"});
  EXPECT_EQ(check_te("[1, -1, -1.5, -1]").findings(), Findings{"S15@3"});
}

TEST(WeightCount, LeavesAChunkThatDoesNotDelayToWeightUndeclared) {
  EXPECT_EQ(check_te("[1, -1, -1.5, -1.5]", {.delayed = DelayedChunks{}}).findings(),
            (Findings{"S17@2", "S17@3"}));
}

TEST(WeightCount, LeavesNamedMicrobatchesToMissingAction) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1\n").findings(), Findings{"S21@4"});
}

}  // namespace
}  // namespace capo
