#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Layers list(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

TEST(LayersPerChunk, WarnsOfAChunkWithoutLayers) {
  const Checked checked = check_te("[1, 2, -2, -1]", {.layers = list({2, 0})});
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_TRUE(checked.accepted());
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.severity, Severity::Warning);
  EXPECT_EQ(finding.message, "chunk 2 is declared to have 0 layers: nothing of it is captured");
  EXPECT_EQ(finding.help, (Help{.text = "leave it out of the order if it is not to be captured"}));
}

TEST(LayersPerChunk, RefusesFewerThanNone) {
  const Checked checked = check_te("[1, 2, -2, -1]", {.layers = list({2, -1})});
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_FALSE(checked.accepted());
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 2 is declared to have -1 layers");
}

TEST(LayersPerChunk, ReportsEveryChunkWithoutLayers) {
  EXPECT_EQ(check_te("[1, 2, -2, -1]", {.layers = list({0, -3})}).findings(),
            (Findings{"S18@-", "S18@-"}));
}

TEST(LayersPerChunk, SaysOnceThatOneNumberForAllIsNone) {
  const Checked checked =
      check_te("[1, 2, -2, -1]", {.layers = {.form = Layers::Form::Count, .values = {0}}});
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "every chunk is declared to have 0 layers: nothing of it is captured");
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
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "layers are declared for 2 chunks, but there are 3");
}

TEST(LayersPerChunk, ComparesTheDelaysWithTheLayers) {
  const TeDeclarations both{.layers = list({1}), .need_wgrad = {{false, false}}};
  const Checked checked = check_te("[1, -1]", both);
  ASSERT_EQ(checked.findings(), Findings{"S18@-"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "whether the weight gradient is delayed is declared for 2 chunks, but there is 1");
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
