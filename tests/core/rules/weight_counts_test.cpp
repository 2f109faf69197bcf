// The rules of core/rules/counts.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using Findings = std::vector<std::string>;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;

TEST(WeightCount, PointsAtTheBackwardThatHasNoWeightGradient) {
  const Checked checked = check_te("[1, 1, -1, -1.5, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S16@4"});
  EXPECT_EQ(checked.first().help,
            (Help{.text = "add `-1.5` after it", .edits = {{{19, 0}, ", -1.5"}}}));
}

TEST(WeightCount, ItsEditCuresTheOrderInEveryTextForm) {
  for (const std::string text :
       {"[1, 1, -1, -1.5, -1]", "1 1 -1 -1.5 -1", "capo 1\nrank 0: F1 F1 B1 W1 B1\n",
        R"({"order": [1, 1, -1, -1.5, -1]})"}) {
    const Checked checked = check_text(text);
    const Edit& edit = checked.first().help.edits.at(0);
    std::string cured = text;
    EXPECT_TRUE(
        check_text(cured.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted())
        << cured;
  }
}

TEST(WeightCount, NamesTheSurplusEntry) {
  EXPECT_EQ(check_te("[1, 1, -1, -1.5, -1, -1.5, -1.5]").findings(), Findings{"S16@6"});
}

TEST(WeightCount, HoldsADeclaredChunkWithoutAnyToTheDeclaration) {
  EXPECT_EQ(check_te("[1, 2, -2, -2.5, -1]", {.delayed = DelayedChunks{.all = true}}).findings(),
            Findings{"S16@4"});
  EXPECT_TRUE(check_te("[1, 2, -2, -2.5, -1]").accepted()) << "undeclared, chunk 1 does not delay";
  EXPECT_TRUE(
      check_te("[1, 2, -2, -2.5, -1]", {.delayed = DelayedChunks{.chunks = {2}}}).accepted());
}

TEST(WeightCount, NamesTheRank) {
  EXPECT_EQ(check_text("capo 1\ndelayed all\nrank 0: F1 B1 W1\nrank 1: F1 B1\n").findings(),
            Findings{"S16@1"});
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

TEST(WeightUndeclared, NamesTheEntryAndTheChunk) {
  const Checked checked = check_te("[1, -1, -1.5]", {.delayed = DelayedChunks{}});
  ASSERT_EQ(checked.findings(), Findings{"S17@2"});
  EXPECT_EQ(checked.first().labels, (std::vector<Label>{{{8, 4}, ""}}));
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
  EXPECT_EQ(check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 I1.0 W1.0\n").findings(),
            Findings{"S17@2"});
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
  EXPECT_EQ(checked.first().message,
            "`I1.0` at index 4 is an input gradient of chunk 1, which does not delay its weight "
            "gradient");
}

Layers list(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

TEST(LayersPerChunk, WarnsOfAChunkWithoutLayers) {
  const Checked checked = check_te("[1, 2, -2, -1]", {.layers = list({2, 0})});
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_TRUE(checked.accepted());
  EXPECT_EQ(checked.first().severity, Severity::Warning);
}

TEST(LayersPerChunk, RefusesFewerThanNone) {
  const Checked checked = check_te("[1, 2, -2, -1]", {.layers = list({2, -1})});
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_FALSE(checked.accepted());
}

TEST(LayersPerChunk, ReportsEveryChunkWithoutLayers) {
  EXPECT_EQ(check_te("[1, 2, -2, -1]", {.layers = list({0, -3})}).findings(),
            (Findings{"S18@-", "S18@-"}));
}

TEST(LayersPerChunk, SaysOnceThatOneNumberForAllIsNone) {
  const Checked checked =
      check_te("[1, 2, -2, -1]", {.layers = {.form = Layers::Form::Count, .values = {0}}});
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
}

TEST(LayersPerChunk, AcceptsOneLayerAndMore) {
  EXPECT_TRUE(check_te("[1, 2, -2, -1]", {.layers = list({1, 7})}).accepted());
  EXPECT_TRUE(
      check_te("[1, -1]", {.layers = {.form = Layers::Form::Count, .values = {1}}}).accepted());
  EXPECT_TRUE(check_te("[1, -1]", {.layers = {.form = Layers::Form::Null}}).accepted());
}

TEST(LayersPerChunk, ReadsThemOutOfAJsonList) {
  EXPECT_EQ(check_text(R"({"order": [1, -1], "num_layers_per_chunk": [0]})").findings(),
            Findings{"S18@-"});
  EXPECT_EQ(check_text(R"({"order": [1, -1], "num_layers_per_chunk": -1})").findings(),
            Findings{"S18@-"});
}

TEST(LayersPerChunk, NamesWhatIsDeclaredForAnotherNumberOfChunks) {
  const Checked checked = check_text("capo 1\nlayers 1,1\nchunks 3\nrank 0: F1 F2 F3 B3 B2 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_EQ(checked.first().message, "layers are declared for 2 chunks, but there are 3");
}

TEST(LayersPerChunk, ComparesTheDelaysWithTheLayers) {
  const TeDeclarations both{.layers = list({1}), .need_wgrad = {{false, false}}};
  EXPECT_EQ(check_te("[1, -1]", both).findings(), Findings{"S18@-"});
  EXPECT_TRUE(check_te("[1, -1]", {.layers = list({1}), .need_wgrad = {{false}}}).accepted());
}

TEST(LayersPerChunk, FindsADelayOfAChunkThatTheOrderDoesNotHave) {
  EXPECT_EQ(check_te("[1, -1]", {.delayed = DelayedChunks{.chunks = {2}}}).findings(),
            Findings{"S18@-"});
}

TEST(LayersPerChunk, JudgesARankOnceThoughItHasTwoOrders) {
  EXPECT_EQ(check_text("capo 1\nlayers [0]\nrank 0: F1 B1\nrank 0 replay: F1 B1\n").findings(),
            Findings{"S18@-"});
}

TEST(LayersPerChunk, GoesByTheRank) {
  EXPECT_EQ(
      check_text("capo 1\nlayers 1,1\nrank 1 layers [0]\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n")
          .findings(),
      Findings{"S18@-"});
}

TEST(LayersPerChunk, LeavesTheLengthOfATeListToTheRulesAboutChunks) {
  EXPECT_EQ(check_te("[1, -1]", {.layers = list({1, 1})}).findings(), Findings{"S13@-"});
  EXPECT_EQ(check_te("[1, 2, -2, -1]", {.layers = list({1})}).findings(),
            (Findings{"S12@1", "S12@2"}));
}

}  // namespace
}  // namespace capo
