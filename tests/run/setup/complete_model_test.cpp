// Completion fills in sizes, names those that it assumed, and leaves what was declared.

#include "run/setup/complete_model.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using Words = std::vector<std::string>;

CompletedModel complete(const std::string& text, const CheckOptions& declared = {},
                        const LoadOptions& options = {}) {
  return complete_model(declared, typed(text, options).schedule);
}

CheckOptions of_module(const Module& module) {
  CheckOptions options;
  options.modules = {.list = {module}, .layers = {{{0}}}};
  return options;
}

const Module& of(const CompletedModel& model, std::int32_t chunk, std::int32_t layer = 0,
                 std::int32_t rank = 0) {
  return *model.options.modules.of(rank, chunk, layer);
}

TEST(CompleteModel, OfNothingDeclaredEverythingIsAssumed) {
  const CompletedModel model = complete("[1, -1]");
  EXPECT_EQ(model.assumed,
            (Words{"ffn 16", "hidden 16", "linear modules that fuse their accumulation",
                   "plan safe", "tokens 8"}));
  const Module& module = of(model, 1);
  EXPECT_EQ(module.kind, ModuleKind::Linear);
  EXPECT_EQ(module.dtype, DataType::Bf16);
  EXPECT_EQ(module.shape, (ModuleShape{.tokens = 8, .hidden = 16, .ffn = 16}));
  EXPECT_TRUE(module.flags.fuse_wgrad_accumulation);
  EXPECT_TRUE(module.flags.grad_added_to_main_grad);
  EXPECT_EQ(model.options.plan.kind, PlanKind::Safe);
  EXPECT_EQ(model.options.plan.alignment, kAlignment);
}

TEST(CompleteModel, OfEverythingDeclaredNothingIs) {
  CheckOptions declared = of_module(small(ModuleKind::GroupedLinear));
  declared.plan.kind = PlanKind::Te;
  const CompletedModel model = complete("[1, -1]", declared);
  EXPECT_EQ(model.assumed, Words{});
  EXPECT_EQ(of(model, 1), small(ModuleKind::GroupedLinear));
  EXPECT_EQ(model.options.plan.kind, PlanKind::Te);
  EXPECT_EQ(model.options.plan.alignment, kAlignment);
}

TEST(CompleteModel, AssumedIsWhatIsNotDeclaredAndNoMore) {
  Module module = small(ModuleKind::Linear);
  module.shape.hidden.reset();
  module.dtype.reset();
  const CompletedModel model = complete("[1, -1]", of_module(module));
  EXPECT_EQ(model.assumed, (Words{"dtype bf16", "hidden 16", "plan safe"}));
  EXPECT_EQ(of(model, 1).dtype, DataType::Bf16);
  EXPECT_EQ(of(model, 1).shape.hidden, 16);
  EXPECT_EQ(of(model, 1).shape.tokens, 8);
}

TEST(CompleteModel, GroupedModulesHaveGroupsAndSplitsAsWell) {
  Module module{.name = "experts", .kind = ModuleKind::GroupedLinear};
  const CompletedModel model = complete("[1, -1]", of_module(module));
  EXPECT_EQ(model.assumed, (Words{"dtype bf16", "ffn 16", "groups 4", "hidden 16", "plan safe",
                                  "splits on the device", "tokens 8"}));
  EXPECT_EQ(of(model, 1).shape.groups, 4);
  EXPECT_EQ(of(model, 1).splits, Splits::Device);
}

// A gradient that nobody said is fused is not.
TEST(CompleteModel, FlagsOfADeclaredModuleStay) {
  Module module{.name = "m", .kind = ModuleKind::Linear};
  module.flags.bias = true;
  const CompletedModel model = complete("[1, -1]", of_module(module));
  EXPECT_EQ(of(model, 1).flags, (ModuleFlags{.bias = true}));
}

// The static input is its 8 rows of 16 columns, and a size of 8 bytes for each of 3 groups.
TEST(CompleteModel, WhereSizesArePartOfTheInputItIsLonger) {
  Module module = small(ModuleKind::GroupedLinear);
  module.splits = Splits::Input;
  EXPECT_EQ(of(complete("[1, -1]", of_module(module)), 1).bytes.input, 8 * 16 * 2 + 3 * 8);
  module.bytes.input = 4096;
  EXPECT_EQ(of(complete("[1, -1]", of_module(module)), 1).bytes.input, 4096);
  module.bytes.input.reset();
  module.splits = Splits::Device;
  EXPECT_EQ(of(complete("[1, -1]", of_module(module)), 1).bytes.input, std::nullopt);
}

// After 7 rows of 3 columns, which take 42 bytes, the next multiple of 8 is 48.
TEST(CompleteModel, SizesInTheInputBeginAtAWord) {
  Module module = small(ModuleKind::GroupedLinear);
  module.shape = {.tokens = 7, .hidden = 3, .ffn = 3, .groups = 2};
  module.splits = Splits::Input;
  EXPECT_EQ(of(complete("[1, -1]", of_module(module)), 1).bytes.input, 48 + 2 * 8);
}

// Sections of 8 rows, each aligned to 256 bytes: the operand of 16 columns, the middle of 32, the
// activation and its gradient of 16 each.
TEST(CompleteModel, WhatAnMlpKeepsFollowsFromItsShape) {
  for (const ModuleKind kind : {ModuleKind::LayerNormMlp, ModuleKind::GroupedMlp}) {
    const CompletedModel model = complete("[1, -1]", of_module(small(kind)));
    EXPECT_EQ(of(model, 1).bytes.activations, 256 + 512 + 256 + 256);
    Module declared = small(kind);
    declared.bytes.activations = 1 << 20;
    EXPECT_EQ(of(complete("[1, -1]", of_module(declared)), 1).bytes.activations, 1 << 20);
  }
  EXPECT_EQ(of(complete("[1, -1]", of_module(small(ModuleKind::Linear))), 1).bytes, ModuleBytes{});
}

// One sequence, and as many kv heads as heads, unless it is said; then that decides.
TEST(CompleteModel, AnAttentionHasHeadsAndASequenceAndNoFfn) {
  Module module{.name = "a", .kind = ModuleKind::Attention, .dtype = DataType::Bf16};
  const CompletedModel bare = complete("[1, -1]", of_module(module));
  EXPECT_EQ(bare.assumed, (Words{"head_dim 4", "heads 4", "hidden 16", "kv_heads 4", "plan safe",
                                 "sequence 8", "tokens 8"}));
  EXPECT_EQ(
      of(bare, 1).shape,
      (ModuleShape{
          .tokens = 8, .hidden = 16, .heads = 4, .kv_heads = 4, .head_dim = 4, .sequence = 8}));
  module.shape = {.kv_heads = 3, .sequence = 6};
  const CompletedModel half = complete("[1, -1]", of_module(module));
  EXPECT_EQ(half.assumed, (Words{"head_dim 4", "heads 3", "hidden 16", "plan safe", "tokens 6"}));
}

// Sections of 8 rows: qkv of 32 columns and its gradient, y of 16 and its gradient, and two numbers
// of each row and head. W reads the input itself, unless the plan says that it reads a copy.
TEST(CompleteModel, WhatAnAttentionKeepsFollowsFromItsShape) {
  CheckOptions declared = of_module(small(ModuleKind::Attention));
  EXPECT_EQ(of(complete("[1, -1]", declared), 1).bytes.activations, 2 * (512 + 256) + 2 * 256);
  declared.plan.aliases = Aliases{};
  EXPECT_EQ(of(complete("[1, -1]", declared), 1).bytes.activations,
            256 + 2 * (512 + 256) + 2 * 256);
}

TEST(CompleteModel, WhetherAModuleDelaysIsWhatTheOrderDoes) {
  Module module = small(ModuleKind::Linear);
  EXPECT_FALSE(of(complete("[1, -1]", of_module(module)), 1).flags.delay_wgrad);
  EXPECT_TRUE(of(complete("[1, -1, -1.5]", of_module(module)), 1).flags.delay_wgrad);
  module.flags.delay_wgrad = true;
  EXPECT_FALSE(of(complete("[1, -1]", of_module(module)), 1).flags.delay_wgrad);
}

// One whose backward is whole at times delays too: what TransformerEngine loses of the others is
// lost.
TEST(CompleteModel, AModuleDelaysWhereTheOrderTakesAnyBackwardApart) {
  const CompletedModel model =
      complete("capo 1\nrank 0 mixed 1\nrank 0: F1.0 F1.1 I1.0 W1.0 B1.1\n", {},
               {.form = TextForm::OrderFile});
  EXPECT_TRUE(of(model, 1).flags.delay_wgrad);
}

TEST(CompleteModel, AModuleOfBothUsesBecomesTwo) {
  const CompletedModel model =
      complete("[1, 2, -2, -2.5, -1]", of_module(small(ModuleKind::Linear)));
  ASSERT_EQ(model.options.modules.list.size(), 2U);
  EXPECT_EQ(of(model, 1).name, "linear");
  EXPECT_FALSE(of(model, 1).flags.delay_wgrad);
  EXPECT_EQ(of(model, 2).name, "linear (delayed)");
  EXPECT_TRUE(of(model, 2).flags.delay_wgrad);
}

TEST(CompleteModel, TheSecondUseIsTheOneThatIsNamed) {
  const CompletedModel model =
      complete("[1, 2, -2, -1, -1.5]", of_module(small(ModuleKind::Linear)));
  EXPECT_EQ(of(model, 1).name, "linear");
  EXPECT_TRUE(of(model, 1).flags.delay_wgrad);
  EXPECT_EQ(of(model, 2).name, "linear (whole)");
  EXPECT_FALSE(of(model, 2).flags.delay_wgrad);
}

TEST(CompleteModel, ModulesOfOneUseAreOne) {
  const CompletedModel model =
      complete("[1, 2, -2, -2.5, -1, -1.5]", of_module(small(ModuleKind::Linear)));
  EXPECT_EQ(model.options.modules.list.size(), 1U);
  EXPECT_EQ(of(model, 1), of(model, 2));
  EXPECT_EQ(of(model, 1).name, "linear");
}

TEST(CompleteModel, EveryLayerOfEveryChunkAndRankHasItsModule) {
  CheckOptions declared;
  declared.modules.list = {small(ModuleKind::Linear), small(ModuleKind::LayerNormLinear)};
  declared.modules.layers = {{{0, 1}}};
  const CompletedModel model = complete(
      "capo 1\nranks 2\nmicrobatches 1\nlayers 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 F2.0 B2.0 "
      "B1.0\n",
      declared);
  EXPECT_EQ(model.options.modules.layers,
            (std::vector<std::vector<std::vector<std::int32_t>>>{{{0, 1}}, {{0, 1}, {0, 1}}}));
  EXPECT_EQ(of(model, 1, 0).kind, ModuleKind::Linear);
  EXPECT_EQ(of(model, 2, 1, 1).kind, ModuleKind::LayerNormLinear);
}

// Whoever chooses more groups than usual has as many, and whoever has one chooses it.
TEST(CompleteModel, ARouterChoosesTwoOfFourGroups) {
  const auto shape_with = [](const ModuleShape& declared) {
    Module moe{.name = "moe", .kind = ModuleKind::MoeLayer, .shape = declared};
    return of(complete("[1, -1]", of_module(moe)), 1).shape;
  };
  EXPECT_EQ(shape_with({}),
            (ModuleShape{.tokens = 8, .hidden = 16, .ffn = 16, .groups = 4, .top_k = 2}));
  EXPECT_EQ(shape_with({.top_k = 6}).groups, 6);
  EXPECT_EQ(shape_with({.groups = 1}).top_k, 1);
  EXPECT_EQ(shape_with({.groups = 9}).top_k, 2);
}

TEST(CompleteModel, WhatFollowsFromAConfigurationIsNotWhatARunKeeps) {
  Module module{.name = "m", .kind = ModuleKind::LayerNormMlp};
  module.derived = {.activations = 1, .operands = 1};
  EXPECT_EQ(of(complete("[1, -1]", of_module(module)), 1).derived, ModuleBytes{});
}

// It is dense unless it says otherwise, or declares anything of experts.
TEST(CompleteModel, ATransformerLayerTakesSizesOfBothItsHalves) {
  const auto shape_with = [](const ModuleShape& declared, std::optional<MlpKind> mlp) {
    Module layer{.name = "t", .kind = ModuleKind::TransformerLayer, .mlp = mlp};
    layer.shape = declared;
    return of(complete("[1, -1]", of_module(layer)), 1).shape;
  };
  const ModuleShape dense{.tokens = 8,
                          .hidden = 16,
                          .ffn = 16,
                          .heads = 4,
                          .kv_heads = 4,
                          .head_dim = 4,
                          .sequence = 8};
  EXPECT_EQ(shape_with({}, std::nullopt), dense);
  EXPECT_EQ(shape_with({}, MlpKind::Dense), dense);
  ModuleShape experts = dense;
  experts.groups = 4;
  experts.top_k = 2;
  EXPECT_EQ(shape_with({}, MlpKind::Experts), experts);
  EXPECT_EQ(shape_with({.top_k = 2}, std::nullopt), experts);
  EXPECT_EQ(shape_with({.groups = 4}, std::nullopt), experts);
}

TEST(CompleteModel, WhatCannotBeRunIsLeftForOthersToRefuse) {
  const Module nameless{.name = "n"};
  const CompletedModel model = complete("[1, -1]", of_module(nameless));
  EXPECT_EQ(model.assumed, (Words{"plan safe"}));
  EXPECT_EQ(of(model, 1).shape, ModuleShape{});
}

}  // namespace
}  // namespace capo::run
