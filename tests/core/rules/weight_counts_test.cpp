// The rules of core/rules/counts.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::Found;
using testing_support::labels;
using testing_support::says;
using testing_support::warns;

TEST(WeightCount, PointsAtTheBackwardThatHasNoWeightGradient) {
  const Checked checked = check_te("[1, 1, -1, -1.5, -1]");
  ASSERT_EQ(checked.findings(), Found{"S16@4"});
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

TEST(WeightCount, CountsWhatItDoesNotDescribe) {
  std::string text = "[";
  for (int chunk = 1; chunk <= 150; ++chunk) text += std::to_string(chunk) + " ";
  for (int chunk = 150; chunk >= 1; --chunk) text += "-" + std::to_string(chunk) + " ";
  const Checked checked = check_te(text + "]", {.delayed = DelayedChunks{.all = true}});
  EXPECT_EQ(checked.result.diagnostics.errors(), 150u);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), Diagnostics::kDefaultLimit);
}

TEST(WeightCount, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheSurplusEntry", check_te("[1, 1, -1, -1.5, -1, -1.5, -1.5]"), "S16@6"},
      {"HoldsADeclaredChunkWithoutAnyToTheDeclaration",
       check_te("[1, 2, -2, -2.5, -1]", {.delayed = DelayedChunks{.all = true}}), "S16@4"},
      {"", check_te("[1, 2, -2, -2.5, -1]"), "", because("undeclared, chunk 1 does not delay")},
      {"", check_te("[1, 2, -2, -2.5, -1]", {.delayed = DelayedChunks{.chunks = {2}}})},
      {"NamesTheRank", check_text("capo 1\ndelayed all\nrank 0: F1 B1 W1\nrank 1: F1 B1\n"),
       "S16@1"},
      {"HoldsTheReplayOrderToWhatTheCaptureOrderDelays",
       check_text("capo 1\nrank 0: F1 B1 W1\nrank 0 replay: F1 B1\n"), "S16@1"},
      {"AcceptsOneForEveryBackward", check_te("[1, 1, -1, -1, -1.5, -1.5]")},
      {"LeavesTheBackwardsToBackwardCountWhereTheWeightGradientsAreRight",
       check_te("[1, 1, -1, -1.5, -1.5]", {.microbatches = 2}), "S15@1"},
      {"", check_te("[1, -1, -1.5, -1]"), "S15@3"},
      {"LeavesAChunkThatDoesNotDelayToWeightUndeclared",
       check_te("[1, -1, -1.5, -1.5]", {.delayed = DelayedChunks{}}), "S17@2 S17@3"},
      {"LeavesNamedMicrobatchesToMissingAction",
       check_text("capo 1\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1\n"), "S21@4"},
  });
}

TEST(WeightUndeclared, StandsHereAndNotThere) {
  const std::string text = "[1, 2, -2, -2.5, -1, -1.5]";
  expect_findings({
      {"NamesTheEntryAndTheChunk", check_te("[1, -1, -1.5]", {.delayed = DelayedChunks{}}), "S17@2",
       labels("8+4")},
      {"GoesByTheDeclarationOfTheChunk", check_te(text, {.delayed = DelayedChunks{.chunks = {2}}}),
       "S17@5"},
      {"", check_te(text, {.need_wgrad = {{true, false}}}), "S17@3"},
      {"", check_te(text, {.need_wgrad = {{true, true}}})},
      {"FindsNothingWhereNothingIsDeclared", check_te("[1, -1, -1.5]")},
      {"", check_csv("0F0,0I0,0W0\n"), "", because("a table cannot declare it")},
      {"GoesByTheRank",
       check_text("capo 1\ndelayed all\nrank 1 delayed none\nrank 0: F1 B1 W1\nrank 1: F1 B1 W1\n"),
       "S17@2"},
      {"HoldsTheReplayOrderToWhatTheCaptureOrderDelays",
       check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 W1\n"), "S17@2"},
      {"ConcernsNamedMicrobatchesAlike",
       check_text("capo 1\ndelayed none\nrank 0: F1.0 B1.0 W1.0\n"), "S17@2"},
      {"FindsAnInputHalfInAChunkThatSplitsEveryBackward",
       check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 I1.0 W1.0\n"), "S17@2"},
      {"", check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0 W1.0\n")},
      {"AllowsBothHalvesInAMixedChunk",
       check_text("capo 1\nmixed 1\nrank 0: F1.0 I1.0 W1.0 F1.1 B1.1\n")},
      {"SparesSuchAnEntryWhatItsOrderWouldBreak",
       check_te("[1, -1.5, -1]", {.delayed = DelayedChunks{}}), "S17@1"},
      {"", check_text("capo 1\ndelayed none\nrank 0: F1.0 W1.0 B1.0\n"), "S17@1"},
      {"LeavesAChunkThatTheRankDoesNotHaveToUnknownChunk",
       check_te("[1, -1, -9.5]", {.delayed = DelayedChunks{}}), "S12@2"},
  });
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

TEST(LayersPerChunk, ComparesTheDelaysWithTheLayers) {
  const TeDeclarations both{.layers = list({1}), .need_wgrad = {{false, false}}};
  EXPECT_EQ(check_te("[1, -1]", both).findings(), Found{"S18@-"});
  EXPECT_TRUE(check_te("[1, -1]", {.layers = list({1}), .need_wgrad = {{false}}}).accepted());
}

TEST(LayersPerChunk, StandsHereAndNotThere) {
  expect_findings({
      {"WarnsOfAChunkWithoutLayers", check_te("[1, 2, -2, -1]", {.layers = list({2, 0})}), "S18@-",
       warns()},
      {"RefusesFewerThanNone", check_te("[1, 2, -2, -1]", {.layers = list({2, -1})}), "S18@-",
       fails()},
      {"ReportsEveryChunkWithoutLayers", check_te("[1, 2, -2, -1]", {.layers = list({0, -3})}),
       "S18@- S18@-"},
      {"SaysOnceThatOneNumberForAllIsNone",
       check_te("[1, 2, -2, -1]", {.layers = {.form = Layers::Form::Count, .values = {0}}}),
       "S18@-"},
      {"AcceptsOneLayerAndMore", check_te("[1, 2, -2, -1]", {.layers = list({1, 7})})},
      {"", check_te("[1, -1]", {.layers = {.form = Layers::Form::Count, .values = {1}}})},
      {"", check_te("[1, -1]", {.layers = {.form = Layers::Form::Null}})},
      {"ReadsThemOutOfAJsonList", check_text(R"({"order": [1, -1], "num_layers_per_chunk": [0]})"),
       "S18@-"},
      {"", check_text(R"({"order": [1, -1], "num_layers_per_chunk": -1})"), "S18@-"},
      {"NamesWhatIsDeclaredForAnotherNumberOfChunks",
       check_text("capo 1\nlayers 1,1\nchunks 3\nrank 0: F1 F2 F3 B3 B2 B1\n"), "S18@-",
       says("layers are declared for 2 chunks, but there are 3")},
      {"FindsADelayOfAChunkThatTheOrderDoesNotHave",
       check_te("[1, -1]", {.delayed = DelayedChunks{.chunks = {2}}}), "S18@-"},
      {"JudgesARankOnceThoughItHasTwoOrders",
       check_text("capo 1\nlayers [0]\nrank 0: F1 B1\nrank 0 replay: F1 B1\n"), "S18@-"},
      {"GoesByTheRank",
       check_text("capo 1\nlayers 1,1\nrank 1 layers [0]\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n"),
       "S18@-"},
      {"LeavesTheLengthOfATeListToTheRulesAboutChunks",
       check_te("[1, -1]", {.layers = list({1, 1})}), "S13@-"},
      {"", check_te("[1, 2, -2, -1]", {.layers = list({1})}), "S12@1 S12@2"},
  });
}

}  // namespace
}  // namespace capo
