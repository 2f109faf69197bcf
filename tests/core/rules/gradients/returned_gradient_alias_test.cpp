#include <capo/tests/support/check_text.h>

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
