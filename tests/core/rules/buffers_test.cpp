// The rules of core/rules/buffers.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::Found;
using testing_support::says;
using testing_support::shows;
using testing_support::warns;

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
  ASSERT_EQ(checked.findings(), Found{"B05@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_TRUE(finding.notes.empty());
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{0, 0, "1", "F(c1,m0)"}, {0, 2, "2", "F(c2,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(WeakInputKey, IsNoneWhereShapesDiffer) {
  Module narrow = kFrozen;
  narrow.shape.hidden = 32;
  Module wide = kLater;
  wide.shape.hidden = 64;
  EXPECT_EQ(check_pair(narrow, wide, "[1, -1, 2, -2]").findings(), Found{});
  EXPECT_EQ(check_pair(kFrozen, wide, "[1, -1, 2, -2]").findings(), Found{"B05@0"})
      << "which may be as wide";
}

TEST(WeakInputKey, GoesByWhoMadeTheSampleFirst) {
  // Microbatch 1 of the first chunk gets the input of the second, and that of its own.
  const Checked checked = check_pair(kFrozen, kLater, "[1, -1, 2, 1, -1, -2, 2, -2]");
  EXPECT_EQ(checked.findings(), Found{"B05@0"});
}

TEST(WeakInputKey, LooksAtEveryLayerOfAChunk) {
  const auto findings = [](const std::string& text) {
    return check_in({.modules = {.list = {kFrozen, kLater}, .layers = {{{0, 1}}}},
                     .plan = {.kind = PlanKind::Te}},
                    text)
        .findings();
  };
  EXPECT_EQ(findings("capo 1\nlayers 2\nrank 0: F1 B1 F1 B1\n"), Found{})
      << "inputs are freed in the order of the layers";
  EXPECT_EQ(findings("capo 1\nlayers 2\nchunks 2\nrank 0: F1 B1 F2 B2\n"), Found{});
}

TEST(WeakInputKey, StandsHereAndNotThere) {
  expect_findings({
      {"IsNoneWhereNobodyTakesOver", check_pair(kFrozen, kLater, "[1, 2, -2, -1]")},
      {"IsNoneWhereBothNeedAGradientOrNeither",
       check_pair(kLater, layer("last", true), "[1, -1, 2, -2]")},
      {"", check_pair(kFrozen, layer("last", false), "[1, -1, 2, -2]")},
      {"TheOtherWayRoundIsAWarning", check_pair(kLater, kFrozen, "[1, -1, 2, -2]"), "B05@0",
       warns()},
      {"IsOneFindingForEachPairOfModules",
       check_pair(kFrozen, kLater, "[1, -1, 2, -2, 1, -1, 2, -2]"), "B05@0"},
      {"LooksAtEveryRank",
       check_pair(kFrozen, kLater,
                  "capo 1\nchunks 2\n"
                  "rank 0: F1.0 F2.0 B2.0 B1.0\n"
                  "rank 1: F1.0 B1.0 F2.0 B2.0\n"),
       "B05@0"},
      {"WithoutAPlanOrUnderCaposIsNone",
       check_pair(kFrozen, kLater, "[1, -1, 2, -2]", std::nullopt)},
      {"", check_pair(kFrozen, kLater, "[1, -1, 2, -2]", PlanKind::Safe)},
      {"WithoutModulesIsNone", check_in({.plan = {.kind = PlanKind::Te}}, "[1, -1, 2, -2]")},
      {"SaysNothingOfALayerThatIsNotDeclared",
       check_pair(kFrozen, kFrozen, "[1, 2, 3, -3, -2, -1]")},
  });
}

Module layer_of_weak_output_key(const char* name, std::int64_t position) {
  return {.name = name, .kind = ModuleKind::LayerNormMlp, .output_position = position};
}

Checked check_pair_of_weak_output_key(const Module& first, const Module& second,
                                      const std::string& text,
                                      std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in(
      {.modules = {.list = {first, second}, .layers = {{{0}, {1}}}}, .plan = {.kind = plan}}, text);
}

const Module kDense = layer_of_weak_output_key("dense", 0);
const Module kExperts = layer_of_weak_output_key("moe", 1);

TEST(WeakOutputKey, ShowsBothGraphs) {
  const Checked checked = check_pair_of_weak_output_key(kDense, kExperts, "[1, 2, -2, -1]");
  ASSERT_EQ(checked.findings(), Found{"B06@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_TRUE(finding.notes.empty());
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{0, 2, "-2", "B(c2,m0)"}, {0, 3, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(WeakOutputKey, IsNoneWhereOutputsAreToldApart) {
  const auto findings = [](const Module& dense, const Module& experts) {
    return check_pair_of_weak_output_key(dense, experts, "[1, 2, -2, -1]").findings();
  };
  Module narrow = kExperts;
  narrow.shape.hidden = 32;
  Module wide = kDense;
  wide.shape.hidden = 64;
  EXPECT_EQ(findings(wide, narrow), Found{});
  EXPECT_EQ(findings(wide, kExperts), Found{"B06@2"}) << "which may be as wide";
  Module half = kExperts;
  half.dtype = DataType::Bf16;
  Module single = kDense;
  single.dtype = DataType::Fp32;
  EXPECT_EQ(findings(single, half), Found{});
  EXPECT_EQ(findings(single, kExperts), Found{"B06@2"});
}

TEST(WeakOutputKey, StandsHereAndNotThere) {
  expect_findings({
      {"IsNoneWherePositionsAgree",
       check_pair_of_weak_output_key(layer_of_weak_output_key("other", 1), kExperts,
                                     "[1, 2, -2, -1]")},
      {"GoesByTheFirstBackward",
       check_pair_of_weak_output_key(kDense, kExperts, "[1, -1, 2, -2, 1, -1, 2, -2]"), "B06@1"},
      {"LooksAtEveryRankAndLayer",
       check_in({.modules = {.list = {kDense, kExperts}, .layers = {{{0}}, {{0, 1}}}},
                 .plan = {.kind = PlanKind::Te}},
                "capo 1\nrank 0 layers 1\nrank 1 layers 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n"),
       "B06@1"},
      {"WithoutAPlanOrUnderCaposIsNone",
       check_pair_of_weak_output_key(kDense, kExperts, "[1, 2, -2, -1]", std::nullopt)},
      {"", check_pair_of_weak_output_key(kDense, kExperts, "[1, 2, -2, -1]", PlanKind::Safe)},
      {"SaysNothingOfALayerThatIsNotDeclared",
       check_pair_of_weak_output_key(kDense, kDense, "[1, 2, 3, -3, -2, -1]")},
  });
}

Module layer_of_strides_lost(bool input, bool output) {
  Module module{.name = "sliced", .kind = ModuleKind::LayerNormLinear};
  module.flags.contiguous_input = input;
  module.flags.contiguous_output = output;
  return module;
}

Checked check_layer(const Module& module, const std::string& text,
                    std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in({.modules = {.list = {module}, .layers = {{{0}}}}, .plan = {.kind = plan}}, text);
}

TEST(StridesLost, IsShownOnceForAllRanksAndLayers) {
  const Checked checked = check_in(
      {.modules = {.list = {layer_of_strides_lost(true, true), layer_of_strides_lost(true, false)},
                   .layers = {{{0}}, {{0, 1}}, {{1}}}},
       .plan = {.kind = PlanKind::Te}},
      "capo 1\nrank 0 layers 1\nrank 1 layers 2\nrank 2 layers 1\n"
      "rank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\nrank 2: F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Found{"B07@0"});
  EXPECT_EQ(checked.first().witness.tasks, (std::vector<WitnessEntry>{{1, 0, "F1.0", "F(c1,m0)"}}));
}

TEST(StridesLost, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheModuleAndItsFirstGraph",
       check_layer(layer_of_strides_lost(true, false), "[1, 1, -1, -1]"), "B07@0",
       shows("error replay: 0:0 1 F(c1,m0)")},
      {"OfAnInputConcernsItsGradient", check_layer(layer_of_strides_lost(false, true), "[1, -1]"),
       "B07@0",
       says("the input of module `sliced`, first at `1` at index 0, is not contiguous, and its "
            "graph forgets the strides: what is read of its gradient is permuted")},
      {"IsOneFindingForEachEnd", check_layer(layer_of_strides_lost(false, false), "[1, 1, -1, -1]"),
       "B07@0 B07@0"},
      {"IsNoneOfContiguousTensors",
       check_layer(layer_of_strides_lost(true, true), "[1, 1, -1, -1]")},
      {"WithoutAPlanOrUnderCaposIsNone",
       check_layer(layer_of_strides_lost(true, false), "[1, -1]", std::nullopt)},
      {"", check_layer(layer_of_strides_lost(true, false), "[1, -1]", PlanKind::Safe)},
  });
}

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// All tensors between layers take 2 MiB, the normed input that it keeps too.
Module block() {
  return {.name = "block",
          .kind = ModuleKind::LayerNormLinear,
          .dtype = DataType::Bf16,
          .shape = {.tokens = 1024, .hidden = 1024, .ffn = 1024},
          .bytes = {.weight = 2 * kMiB}};
}

Checked check_budget(std::optional<std::int64_t> budget, const std::string& text,
                     PlanKind plan = PlanKind::Te) {
  return check_in(
      {.modules = {.list = {block()}, .layers = {{{0}}}}, .plan = {.kind = plan, .budget = budget}},
      text);
}

TEST(OverBudget, ShowsThePeakAndTheLeast) {
  const Checked checked = check_budget(24 * kMiB, "[1, 1, 1, 1, -1, -1, -1, -1]");
  ASSERT_EQ(checked.findings(), Found{"B08@4"});
  const Diagnostic& finding = checked.first();
  ASSERT_EQ(finding.notes.size(), 1u);
  EXPECT_NE(finding.notes.at(0).text.find("30 MiB"), std::string::npos) << finding.notes.at(0).text;
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{0, 4, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(OverBudget, NamesCaposPlanWhereThatFits) {
  EXPECT_EQ(check_budget(13 * kMiB, "[1, -1, 1, -1]").findings().size(), 1u);
  EXPECT_TRUE(check_budget(13 * kMiB, "[1, -1, 1, -1]", PlanKind::Safe).accepted());
}

TEST(OverBudget, StandsHereAndNotThere) {
  const std::string order = "[1, 1, 1, 1, -1, -1, -1, -1]";
  const std::string order_needs_a_budget_a_plan_and_sizes = "[1, 1, -1, -1]";
  expect_findings({
      {"CountsWeightsAndFitsToTheByte", check_budget(30 * kMiB, order)},
      {"", check_budget(30 * kMiB - 1, order), "B08@4"},
      {"IsCuredByFewerInFlight", check_budget(24 * kMiB, "[1, -1, 1, -1, 1, -1, 1, -1]")},
      {"IsAMatterOfCaposPlanToo",
       check_budget(24 * kMiB, "[1, 1, 1, 1, -1, -1, -1, -1]", PlanKind::Safe), "B08@4"},
      {"IsOneFindingForEachRank",
       check_budget(20 * kMiB,
                    "capo 1\n"
                    "rank 0: F1 F1 F1 B1 B1 B1\n"
                    "rank 1: F1 B1 F1 B1 F1 B1\n"
                    "rank 2: F1 F1 F1 B1 B1 B1\n"),
       "B08@3 B08@3"},
      {"CountsEveryLayer", check_budget(14 * kMiB, "capo 1\nlayers 1\nrank 0: F1 B1\n")},
      {"", check_budget(14 * kMiB, "capo 1\nlayers 2\nrank 0: F1 B1\n"), "B08@1", fails()},
      {"NeedsABudgetAPlanAndSizes",
       check_budget(std::nullopt, order_needs_a_budget_a_plan_and_sizes)},
      {"", check_in({.modules = {.list = {block()}, .layers = {{{0}}}}, .plan = {.budget = 1}},
                    order_needs_a_budget_a_plan_and_sizes)},
  });
}

TEST(OverBudget, WarnsOfSizesThatNobodyDeclared) {
  const Checked bare = check_in({.plan = {.kind = PlanKind::Te, .budget = 1}}, "[1, -1]");
  EXPECT_TRUE(bare.accepted());
  ASSERT_EQ(bare.findings(), (Found{"B08@-"}));
  EXPECT_EQ(
      bare.first().message,
      "the budget of 1 B cannot be held against sizes that nobody declared: a layer of rank 0 "
      "has no module");
  Module unsized = block();
  unsized.shape.tokens.reset();
  const Checked half = check_in({.modules = {.list = {block(), unsized}, .layers = {{{0}, {1}}}},
                                 .plan = {.kind = PlanKind::Te, .budget = 1}},
                                "[1, 2, -2, -1]");
  EXPECT_TRUE(half.accepted()) << "one of the layers has no size";
  ASSERT_EQ(half.findings(), (Found{"B08@-"}));
  EXPECT_TRUE(half.first().message.ends_with("declares no `shape.tokens`"));
}

// The plan holds more than it has to if a composite has several layers.
TEST(OverBudget, NamesNoOtherPlanWhereItIsCaposThatDoesNotFit) {
  const std::string order = "capo 1\nlayers 2\nrank 0: F1 (F1 B1) B1\n";
  const Checked fits = check_budget(std::nullopt, order, PlanKind::Safe);
  ASSERT_TRUE(fits.result.plan);
  const RankMemory& memory = fits.result.plan->ranks.at(0);
  const std::int64_t least = memory.lower_bound + memory.weights;
  ASSERT_LT(least, memory.peak() + memory.weights);
  EXPECT_EQ(check_budget(least, order, PlanKind::Safe).findings().size(), 1u);
}

}  // namespace
}  // namespace capo
