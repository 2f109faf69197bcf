#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn", .kind = ModuleKind::Linear, .flags = {.clone_param_grads = false}};

TEST(ReturnedGradientAlias, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G10");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` returns its weight gradient in memory of the graphs: `.grad` of `-1` at "
            "index 2 is overwritten when a later backward is replayed");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{7, 2}, "what this returns is kept"},
                                                 {{11, 2}, "and this overwrites it"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{.text =
                "leave clone_param_grads on, or take `.grad` into main_grad after each backward"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 2, "-1", "B(c1,m0)"}, {0, 3, "-1", "B(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(ReturnedGradientAlias, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` "
            "returns its weight gradient in memory of the graphs: `.grad` of `-1` at index 2 is "
            "overwritten when a later backward is replayed");
  EXPECT_TRUE(checked.accepted());
}

TEST(ReturnedGradientAlias, UnderCaposPlanIsNone) {
  EXPECT_TRUE(
      check_module(kModule, "[1, 1, -1, -1]", PlanKind::Safe).of(Family::Gradients).empty());
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

TEST(ReturnedGradientAlias, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::Linear}, "[1, 1, -1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "copies are returned";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.fuse_wgrad_accumulation = true, .clone_param_grads = false}},
                           "[1, 1, -1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "nothing is returned";
  EXPECT_TRUE(
      check_module(
          {.name = "attn", .kind = ModuleKind::Linear, .flags = {.clone_param_grads = false}},
          "[1, -1]")
          .of(Family::Gradients)
          .empty())
      << "there is one microbatch";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.grad_added_to_main_grad = true, .clone_param_grads = false}},
                           "[1, 1, -1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "DDP takes it at once";
}

}  // namespace
}  // namespace capo
