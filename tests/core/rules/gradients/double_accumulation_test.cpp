#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn",
                     .kind = ModuleKind::BasicLinearOp,
                     .flags = {.fuse_wgrad_accumulation = true, .overwrite_main_grad = true}};

TEST(DoubleAccumulation, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G05");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` doubles its weight gradient: `-1` at index 1 writes it to main_grad and "
            "returns a live view of main_grad, with grad_added_to_main_grad unset, as a gradient "
            "still to be added");
  EXPECT_EQ(found[0].labels,
            (std::vector<Label>{{{4, 2}, "returns what main_grad already holds"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "clear main_grad before the step and leave overwrite_main_grad out"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 1, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(DoubleAccumulation, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(
      found[0].message,
      "if these layers are captured as TransformerEngine captures them, module `attn` doubles its "
      "weight gradient: `-1` at index 1 writes it to main_grad and returns a live view of "
      "main_grad, with grad_added_to_main_grad unset, as a gradient still to be added");
  EXPECT_TRUE(checked.accepted());
}

TEST(DoubleAccumulation, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Gradients).empty());
}

TEST(DoubleAccumulation, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::BasicLinearOp,
                            .flags = {.fuse_wgrad_accumulation = true}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "it adds, and returns none";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::BasicLinearOp,
                            .flags = {.overwrite_main_grad = true}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "main_grad is not written";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .kind = ModuleKind::GroupedLinearOp,
                    .flags = {.fuse_wgrad_accumulation = true, .overwrite_main_grad = true}},
                   "[1, -1]")
          .of(Family::Gradients)
          .empty())
      << "another operation asks twice";
  EXPECT_TRUE(
      check_module({.name = "attn",
                    .kind = ModuleKind::Linear,
                    .flags = {.fuse_wgrad_accumulation = true, .overwrite_main_grad = true}},
                   "[1, -1]")
          .of(Family::Gradients)
          .empty())
      << "nor do modules";
}

}  // namespace
}  // namespace capo
