// The rules of core/rules/module_gradients.cpp beyond their rows in module_rules_test.cpp.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::check_module;
using testing_support::Checked;

const Module kWgradLost{.name = "attn", .kind = ModuleKind::Linear, .flags = {.delay_wgrad = true}};

TEST(WgradLost, LeavesGroupedLinearToGradientUninitialised) {
  const auto found =
      check_module(
          {.name = "attn", .kind = ModuleKind::GroupedLinear, .flags = {.delay_wgrad = true}},
          "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G03");
}

TEST(WgradLost, IsOneFindingOfEachModuleAtItsFirstLayer) {
  const Module other{.name = "mlp", .flags = {.delay_wgrad = true}};
  const Module sound{.name = "moe",
                     .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}};
  // Rank 0 runs moe and attn, rank 1 attn and mlp.
  const ModuleTable modules{.list = {kWgradLost, other, sound}, .layers = {{{2}, {0}}, {{0}, {1}}}};
  const Checked checked = testing_support::check_in(
      {.modules = modules, .plan = {.kind = PlanKind::Te, .aliases = Aliases{}}},
      "capo 1\nchunks 2\nrank 0: F1 F2 B2 W2 B1 W1\nrank 1: F1 F2 B2 W2 B1 W1\n");
  EXPECT_EQ(checked.of(Family::Gradients).size(), 2u);
}

TEST(WgradLost, LooksAtEveryLayerOfAChunk) {
  const Module sound{.name = "moe",
                     .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}};
  const auto findings = [&](const std::string& text) {
    return testing_support::check_in(
               {.modules = {.list = {sound, kWgradLost}, .layers = {{{0, 1}}}},
                .plan = {.kind = PlanKind::Te, .aliases = Aliases{}}},
               text)
        .of(Family::Gradients)
        .size();
  };
  EXPECT_EQ(findings("capo 1\nrank 0: F1 B1 W1\n"), 1u) << "as many as are declared";
  EXPECT_EQ(findings("capo 1\nlayers 2\nrank 0: F1 B1 W1\n"), 1u);
  EXPECT_EQ(findings("capo 1\nlayers 1\nrank 0: F1 B1 W1\n"), 0u) << "there is no second one";
}

TEST(WgradLost, WithoutAnEntryOfItsOwnStandsAtTheBackward) {
  const auto found = check_module(kWgradLost, "[1, -1]").of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<WitnessEntry>{{0, 1, "-1", "B(c1,m0)"}}));
}

const Module kBiasGradientLost{
    .name = "attn",
    .kind = ModuleKind::Linear,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}};

TEST(BiasGradientLost, ConcernsEveryModuleWhoseDelayedProductMakesIt) {
  for (const ModuleKind kind :
       {ModuleKind::Linear, ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp,
        ModuleKind::TransformerLayer, ModuleKind::GroupedLinear}) {
    Module module = kBiasGradientLost;
    module.kind = kind;
    EXPECT_EQ(check_module(module, "[1, -1, -1.5]").of(Family::Gradients).size(), 1u)
        << name_of(kind);
  }
}

TEST(BiasGradientLost, ConcernsAGroupedLinearWhoseSplitsAreOnTheHost) {
  Module module = kBiasGradientLost;
  module.kind = ModuleKind::GroupedLinear;
  const auto findings = [&](std::optional<Splits> splits) {
    module.splits = splits;
    return check_module(module, "[1, 1, -1, -1.5, -1, -1.5]").of(Family::Gradients).size();
  };
  EXPECT_EQ(findings(std::nullopt), 1u);
  EXPECT_EQ(findings(Splits::Host), 1u);
  EXPECT_EQ(findings(Splits::Device), 0u);
}

TEST(FrozenWeight, OfALayernormMlpMixesUpItsTwoWeights) {
  const auto found =
      check_module(
          {.name = "attn",
           .kind = ModuleKind::LayerNormMlp,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
          "[1, -1, -1.5]")
          .of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
}

TEST(FrozenWeight, IsNoMatterOfUndeclaredKinds) {
  EXPECT_EQ(
      check_module(
          {.name = "attn",
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
          "[1, -1, -1.5]")
          .of(Family::Gradients)
          .size(),
      1u);
}

const Module kTied{.name = "tied", .flags = {.delay_wgrad = true, .shared_weight = true}};

Checked check_table(const std::string& text, const ModuleTable& modules, PlanOptions plan = {}) {
  return check_in({.modules = modules, .plan = std::move(plan)}, text,
                  {.form = TextForm::TorchCsv});
}

const ModuleTable kTwice{.list = {kTied}, .layers = {{{0, 0}}}};

TEST(SharedWeight, NamesTheModuleAndTheStage) {
  const Checked checked = check_table("0F0,0I0,0W0\n", kTwice);
  const auto found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G06");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<WitnessEntry>{{0, 2, "0W0", "W(c1,m0)"}}));
}

TEST(SharedWeight, ConcernsTwoLayersOfOneStage) {
  EXPECT_TRUE(check_table("0F0,0I0,0W0\n", {.list = {kTied}, .layers = {{{0}}}})
                  .of(Family::Gradients)
                  .empty());
  Module other = kTied;
  other.name = "other";
  EXPECT_TRUE(check_table("0F0,0I0,0W0\n", {.list = {kTied, other}, .layers = {{{0, 1}}}})
                  .of(Family::Gradients)
                  .empty())
      << "nobody says that these two share";
}

TEST(SharedWeight, AcceptsAWholeBackward) {
  EXPECT_TRUE(check_table("0F0,0B0\n", kTwice).of(Family::Gradients).empty());
}

TEST(SharedWeight, IsAFindingOfEachModule) {
  EXPECT_EQ(check_table("0F0,0F1,0I0,0W0,0I1,0W1,1F0,1F1,1I0,1W0,1I1,1W1\n", kTwice)
                .of(Family::Gradients)
                .size(),
            1u);
}

TEST(SharedWeight, LeavesTheQueueOfTransformerEngineAlone) {
  const auto found =
      check_table("0F0,0I0,0W0\n", kTwice, {.kind = PlanKind::Te}).of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G01") << "there it is lost, like any other";
  EXPECT_TRUE(
      check_table("0F0,0I0,0W0\n", kTwice, {.kind = PlanKind::Safe}).of(Family::Gradients).empty());
  const auto listed = check_in({.modules = kTwice}, "[1, -1, -1.5]").of(Family::Gradients);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].rule, "G01") << "a list is not run by PyTorch";
}

TEST(SharedWeight, JudgesATableWithTransfers) {
  const std::string table = "0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n";
  const ModuleTable both{.list = {kTied}, .layers = {{{0, 0}}, {{0, 0}}}};
  EXPECT_EQ(check_table(table, both).of(Family::Gradients).size(), 1u);
}

// Their faults, if any, are other rules'.
TEST(SharedWeight, ConcernsWeightsThatAreTrainedDelayedAndAddedByAutograd) {
  const auto breaks = [](auto change) {
    Module module = kTied;
    change(module.flags);
    const auto found = check_table("0F0,0I0,0W0\n", {.list = {module}, .layers = {{{0, 0}}}})
                           .of(Family::Gradients);
    return std::any_of(found.begin(), found.end(),
                       [](const Diagnostic& finding) { return finding.rule == "G06"; });
  };
  EXPECT_TRUE(breaks([](ModuleFlags&) {}));
  EXPECT_FALSE(breaks([](ModuleFlags& flags) { flags.delay_wgrad = false; }));
  EXPECT_FALSE(breaks([](ModuleFlags& flags) { flags.fuse_wgrad_accumulation = true; }));
  EXPECT_FALSE(breaks([](ModuleFlags& flags) { flags.frozen_weight = true; }));
}

const Module kMainGradLayout{.name = "attn",
                             .kind = ModuleKind::GroupedMlp,
                             .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
                             .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}};

TEST(MainGradLayout, SaysWhatTransformerEngineDoesWithIt) {
  Module module = kMainGradLayout;
  module.kind = ModuleKind::GroupedLinear;
  module.shape = {.hidden = 32, .ffn = 64, .groups = 4};
  const auto message = [&](const MainGrad& main_grad) {
    module.main_grad = main_grad;
    const auto found = check_module(module, "[1, -1]").of(Family::Gradients);
    return found.size() == 1 ? found[0].message : "";
  };
  EXPECT_TRUE(message({.shape = {4, 64, 32}, .strides = {2048, 1, 64}})
                  .ends_with("; backward fails in view(-1)"));
  EXPECT_TRUE(
      message({.shape = {256, 32}, .strides = {64, 1}}).ends_with("; backward fails in view(-1)"));
  EXPECT_TRUE(message({.shape = {100}, .strides = {1}})
                  .ends_with("; TransformerEngine refuses it in backward"));
  EXPECT_EQ(message({.shape = {8192}, .strides = {1}}), "") << "it can be viewed so";
  module.kind.reset();
  EXPECT_NE(message({.shape = {256, 32}, .strides = {64, 1}}), "");
}

TEST(MainGradLayout, TakesTheShapeOfTheModuleWhereAllOfItIsDeclared) {
  Module module = kMainGradLayout;
  module.kind = ModuleKind::GroupedLinear;
  module.shape = {.hidden = 32, .ffn = 64, .groups = 4};
  module.main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 32, 1}};
  EXPECT_TRUE(check_module(module, "[1, -1]").of(Family::Gradients).empty());
  module.shape.ffn = 63;
  for (auto* size : {&module.shape.groups, &module.shape.ffn, &module.shape.hidden}) {
    const auto kept = *size;
    size->reset();
    EXPECT_TRUE(check_module(module, "[1, -1]").of(Family::Gradients).empty())
        << "that of main_grad itself";
    *size = kept;
  }
  EXPECT_EQ(check_module(module, "[1, -1]").of(Family::Gradients).size(), 1u);
}

TEST(MainGradLayout, SaysNothingOfWhatTransformerEngineDoesWithAModuleWithoutGroups) {
  Module module = kMainGradLayout;
  module.kind = ModuleKind::Linear;
  const auto found = check_module(module, "[1, -1]").of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G07");
  EXPECT_EQ(found[0].message.find(';'), std::string::npos) << found[0].message;
}

TEST(MainGradLayout, LeavesAFrozenWeight) {
  Module module = kMainGradLayout;
  module.flags.frozen_weight = true;
  const auto found = check_module(module, "[1, -1]").of(Family::Gradients);
  EXPECT_TRUE(std::none_of(found.begin(), found.end(),
                           [](const Diagnostic& finding) { return finding.rule == "G07"; }));
}

const Module kHooksNotRun{
    .name = "attn",
    .kind = ModuleKind::GroupedLinearOp,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}};

TEST(HooksNotRun, NeedsAKnownKind) {
  Module module = kHooksNotRun;
  module.kind.reset();
  EXPECT_TRUE(check_module(module, "[1, 1, -1, -1.5, -1, -1.5]").of(Family::Gradients).empty());
}

TEST(ReturnedGradientAlias, OfAFusedModuleIsThatOfABiasOrANorm) {
  const auto message_of = [](ModuleKind kind, const ModuleFlags& flags, const char* order) {
    const Checked checked = check_module(
        {.name = "attn", .kind = kind, .flags = flags, .splits = Splits::Device}, order);
    for (const Diagnostic& finding : checked.of(Family::Gradients)) {
      if (finding.rule == "G10") return finding.message;
    }
    return std::string();
  };
  const ModuleFlags fused{.fuse_wgrad_accumulation = true, .clone_param_grads = false};
  ModuleFlags with_bias = fused;
  with_bias.bias = true;
  ModuleFlags delayed = fused;
  delayed.delay_wgrad = true;
  ModuleFlags delayed_with_bias = with_bias;
  delayed_with_bias.delay_wgrad = true;
  constexpr const char* kWhole = "[1, 1, -1, -1]";
  constexpr const char* kDelayed = "[1, -1, -1.5, 1, -1, -1.5]";
  const auto returns = [](const std::string& message, const char* what) {
    return message.find(std::string("returns its ") + what + " in memory") != std::string::npos;
  };
  EXPECT_TRUE(returns(message_of(ModuleKind::Linear, with_bias, kWhole), "bias gradient"));
  EXPECT_TRUE(returns(message_of(ModuleKind::LayerNormLinear, fused, kWhole), "norm's gradients"));
  EXPECT_TRUE(returns(message_of(ModuleKind::LayerNormMlp, delayed, kDelayed), "norm's gradients"));
  EXPECT_TRUE(
      returns(message_of(ModuleKind::GroupedLinear, delayed_with_bias, kDelayed), "bias gradient"));
  EXPECT_EQ(message_of(ModuleKind::Linear, delayed_with_bias, kDelayed), "") << "W makes it: G02";
  EXPECT_EQ(message_of(ModuleKind::Linear, delayed, kDelayed), "");
}

const Module kShardedWeight{
    .name = "attn",
    .kind = ModuleKind::Linear,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .sharded_weight = true}};

TEST(ShardedWeight, SaysWhatBecomesOfItByKind) {
  const auto ends = [](std::optional<ModuleKind> kind, std::string_view with) {
    Module module = kShardedWeight;
    module.kind = kind;
    const auto found = check_module(module, "[1, -1, -1.5]").of(Family::Gradients);
    return found.size() == 1 && found[0].message.ends_with(with);
  };
  EXPECT_TRUE(ends(ModuleKind::GroupedLinear,
                   ": its gradient is scattered by the backward, before it exists"));
  EXPECT_TRUE(ends(ModuleKind::GroupedLinearOp, ": TransformerEngine refuses to"));
  EXPECT_TRUE(ends(std::nullopt, ": its gradient is not scattered when it is done"));
}

}  // namespace
}  // namespace capo
