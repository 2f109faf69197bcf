#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Module layer(const char* name, bool needs_gradient) {
  Module module{.name = name, .kind = ModuleKind::LayerNormLinear};
  module.flags.input_requires_grad = needs_gradient;
  return module;
}

// The first chunk of each rank is the one, the second the other.
Checked check_pair(const Module& first, const Module& second, const std::string& text,
                   std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in(
      {.modules = {.list = {first, second}, .layers = {{{0}, {1}}}}, .plan = {.kind = plan}}, text);
}

const Module kFrozen = layer("first", false);
const Module kLater = layer("later", true);

TEST(WeakInputKey, ShowsBothGraphs) {
  const Checked checked = check_pair(kFrozen, kLater, "[1, -1, 2, -2]");
  ASSERT_EQ(checked.findings(), Findings{"B05@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "module `later` at `2` at index 2 shares the static input that module `first` made at "
            "`1` at index 0, which needs no gradient: its own is lost, without an error");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{8, 1}, "takes the input over"}, {{1, 1}, "its sample decides"}}));
  EXPECT_TRUE(finding.notes.empty());
  EXPECT_EQ(finding.help,
            (Help{.text = "let both samples need a gradient, or give them shapes that "
                          "TransformerEngine tells apart"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 0, "1", "F(c1,m0)"}, {0, 2, "2", "F(c2,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(WeakInputKey, IsNoneWhereNobodyTakesOver) {
  EXPECT_TRUE(check_pair(kFrozen, kLater, "[1, 2, -2, -1]").accepted());
}

TEST(WeakInputKey, IsNoneWhereBothNeedAGradientOrNeither) {
  EXPECT_TRUE(check_pair(kLater, layer("last", true), "[1, -1, 2, -2]").findings().empty());
  EXPECT_TRUE(check_pair(kFrozen, layer("last", false), "[1, -1, 2, -2]").findings().empty());
}

TEST(WeakInputKey, IsNoneWhereShapesDiffer) {
  Module narrow = kFrozen;
  narrow.shape.hidden = 32;
  Module wide = kLater;
  wide.shape.hidden = 64;
  EXPECT_EQ(check_pair(narrow, wide, "[1, -1, 2, -2]").findings(), Findings{});
  EXPECT_EQ(check_pair(kFrozen, wide, "[1, -1, 2, -2]").findings(), Findings{"B05@0"})
      << "which may be as wide";
}

TEST(WeakInputKey, TheOtherWayRoundIsAWarning) {
  const Checked checked = check_pair(kLater, kFrozen, "[1, -1, 2, -2]");
  ASSERT_EQ(checked.findings(), Findings{"B05@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.severity, Severity::Warning);
  EXPECT_EQ(finding.message,
            "module `first` at `2` at index 2 shares the static input that module `later` made at "
            "`1` at index 0, which needs a gradient: its own is computed for nobody");
  EXPECT_TRUE(checked.accepted());
}

TEST(WeakInputKey, GoesByWhoMadeTheSampleFirst) {
  // Microbatch 1 of the first chunk gets the input of the second, and that of its own.
  const Checked checked = check_pair(kFrozen, kLater, "[1, -1, 2, 1, -1, -2, 2, -2]");
  EXPECT_EQ(checked.findings(), Findings{"B05@0"});
}

TEST(WeakInputKey, IsOneFindingForEachPairOfModules) {
  EXPECT_EQ(check_pair(kFrozen, kLater, "[1, -1, 2, -2, 1, -1, 2, -2]").findings(),
            Findings{"B05@0"});
}

TEST(WeakInputKey, LooksAtEveryRank) {
  const Checked checked = check_pair(kFrozen, kLater,
                                     "capo 1\nchunks 2\n"
                                     "rank 0: F1.0 F2.0 B2.0 B1.0\n"
                                     "rank 1: F1.0 B1.0 F2.0 B2.0\n");
  ASSERT_EQ(checked.findings(), Findings{"B05@0"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "module `later` at `F2.0` at index 2 of rank 1 shares the static input that module "
      "`first` made at `F1.0` at index 0 of rank 1, which needs no gradient: its own is lost, "
      "without an error");
}

TEST(WeakInputKey, LooksAtEveryLayerOfAChunk) {
  const auto findings = [](const std::string& text) {
    return check_in({.modules = {.list = {kFrozen, kLater}, .layers = {{{0, 1}}}},
                     .plan = {.kind = PlanKind::Te}},
                    text)
        .findings();
  };
  EXPECT_EQ(findings("capo 1\nlayers 2\nrank 0: F1 B1 F1 B1\n"), Findings{})
      << "inputs are freed in the order of the layers";
  EXPECT_EQ(findings("capo 1\nlayers 2\nchunks 2\nrank 0: F1 B1 F2 B2\n"), Findings{});
}

TEST(WeakInputKey, WithoutAPlanOrUnderCaposIsNone) {
  EXPECT_TRUE(check_pair(kFrozen, kLater, "[1, -1, 2, -2]", std::nullopt).findings().empty());
  EXPECT_TRUE(check_pair(kFrozen, kLater, "[1, -1, 2, -2]", PlanKind::Safe).findings().empty());
}

TEST(WeakInputKey, WithoutModulesIsNone) {
  EXPECT_TRUE(check_in({.plan = {.kind = PlanKind::Te}}, "[1, -1, 2, -2]").findings().empty());
}

TEST(WeakInputKey, SaysNothingOfALayerThatIsNotDeclared) {
  EXPECT_TRUE(check_pair(kFrozen, kFrozen, "[1, 2, 3, -3, -2, -1]").accepted());
}

}  // namespace
}  // namespace capo
