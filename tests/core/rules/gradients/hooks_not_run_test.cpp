#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn",
    .kind = ModuleKind::GroupedLinearOp,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}};

TEST(HooksNotRun, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G08");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(
      found[0].message,
      "module `attn` is never reduced: after a replay of `-1.5` at index 3 TransformerEngine runs "
      "the hooks of its modules, not of its operations, and its reductions hang on them");
  EXPECT_EQ(found[0].labels,
            (std::vector<Label>{{{11, 4}, "its replays run no hook of an operation"}}));
  EXPECT_EQ(found[0].help, (Help{.text = "take the module of that name instead of the operation, "
                                         "or reduce when the step is over"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 3, "-1.5", "W(c1,m0)"}, {0, 5, "-1.5", "W(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(HooksNotRun, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` is "
            "never reduced: after a replay of `-1.5` at index 3 TransformerEngine runs the hooks "
            "of its modules, not of its operations, and its reductions hang on them");
  EXPECT_TRUE(checked.accepted());
}

TEST(HooksNotRun, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", PlanKind::Safe)
                  .of(Family::Gradients)
                  .empty());
}

TEST(HooksNotRun, LeavesOtherModulesAlone) {
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::GroupedLinear,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
          "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "those of modules run";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinearOp,
                            .flags = {.fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "autograd's hooks run with B";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinearOp,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "nothing hangs on them";
}

TEST(HooksNotRun, NeedsAKnownKind) {
  Module module = kModule;
  module.kind.reset();
  EXPECT_TRUE(check_module(module, "[1, 1, -1, -1.5, -1, -1.5]").of(Family::Gradients).empty());
}

}  // namespace
}  // namespace capo
