#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn",
                     .kind = ModuleKind::Linear,
                     .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}};

TEST(BiasGradientLost, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G02");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` loses the gradient of its bias, which the delayed product makes: "
            "`.grad` is assigned when `-1.5` at index 3 is captured, and by no replay");
  EXPECT_EQ(
      found[0].labels,
      (std::vector<Label>{{{11, 4}, "its replays compute a bias gradient that nobody reads"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{.text = "add the bias outside of the module, or do not delay its weight gradient"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 3, "-1.5", "W(c1,m0)"}, {0, 5, "-1.5", "W(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(BiasGradientLost, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` loses "
            "the gradient of its bias, which the delayed product makes: `.grad` is assigned when "
            "`-1.5` at index 3 is captured, and by no replay");
  EXPECT_TRUE(checked.accepted());
}

TEST(BiasGradientLost, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", PlanKind::Safe)
                  .of(Family::Gradients)
                  .empty());
}

TEST(BiasGradientLost, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "there is no bias";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .kind = ModuleKind::Linear,
                    .dtype = DataType::Fp8,
                    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
                   "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "B makes it from fp8 operands";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .kind = ModuleKind::GroupedLinearOp,
                    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
                   "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "B makes it in an operation";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .kind = ModuleKind::GroupedLinear,
                    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true},
                    .splits = Splits::Device},
                   "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "B makes it on the grouped path";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
                   "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "nothing is known of the kind";
}

TEST(BiasGradientLost, ConcernsEveryModuleWhoseDelayedProductMakesIt) {
  for (const ModuleKind kind :
       {ModuleKind::Linear, ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp,
        ModuleKind::TransformerLayer, ModuleKind::GroupedLinear}) {
    Module module = kModule;
    module.kind = kind;
    EXPECT_EQ(check_module(module, "[1, -1, -1.5]").of(Family::Gradients).size(), 1u)
        << name_of(kind);
  }
}

TEST(BiasGradientLost, ConcernsAGroupedLinearWhoseSplitsAreOnTheHost) {
  Module module = kModule;
  module.kind = ModuleKind::GroupedLinear;
  const auto findings = [&](std::optional<Splits> splits) {
    module.splits = splits;
    return check_module(module, "[1, 1, -1, -1.5, -1, -1.5]").of(Family::Gradients).size();
  };
  EXPECT_EQ(findings(std::nullopt), 1u);
  EXPECT_EQ(findings(Splits::Host), 1u);
  EXPECT_EQ(findings(Splits::Device), 0u);
}

}  // namespace
}  // namespace capo
