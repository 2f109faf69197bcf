#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn", .kind = ModuleKind::GroupedLinear, .flags = {.delay_wgrad = true}};

TEST(GradientUninitialised, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G03");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(
      found[0].message,
      "module `attn` returns memory that nobody has written: `-1` at index 2 hands autograd the "
      "buffer that its delayed weight gradient fills later, and autograd adds it to `.grad`");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{7, 2}, "returns an uninitialised buffer"},
                                                 {{11, 4}, "this fills it"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{.text =
                "set fuse_wgrad_accumulation, so that the weight gradient adds into main_grad"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 2, "-1", "B(c1,m0)"}, {0, 3, "-1.5", "W(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(GradientUninitialised, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` "
            "returns memory that nobody has written: `-1` at index 2 hands autograd the buffer "
            "that its delayed weight gradient fills later, and autograd adds it to `.grad`");
  EXPECT_TRUE(checked.accepted());
}

TEST(GradientUninitialised, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", PlanKind::Safe)
                  .of(Family::Gradients)
                  .empty());
}

TEST(GradientUninitialised, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinear,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "a fused one returns none";
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::GroupedLinear}, "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "what is not delayed is there";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinear,
                            .flags = {.delay_wgrad = true, .frozen_weight = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "no gradient is asked for";
}

}  // namespace
}  // namespace capo
