#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn",
    .kind = ModuleKind::TransformerLayer,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true},
    .grad_buckets = 2};

TEST(SetOrder, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G09");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` makes 2 gradient buckets ready within `-1.5` at index 3, in an order "
            "that TransformerEngine takes from a set: their reductions may start in another order "
            "on another rank");
  EXPECT_EQ(found[0].labels,
            (std::vector<Label>{{{11, 4}, "starts several reductions, in any order"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{
          .text =
              "put the parameters of the layer into one bucket, or reduce when the step is over"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 3, "-1.5", "W(c1,m0)"}, {0, 5, "-1.5", "W(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(SetOrder, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` makes "
            "2 gradient buckets ready within `-1.5` at index 3, in an order that TransformerEngine "
            "takes from a set: their reductions may start in another order on another rank");
  EXPECT_TRUE(checked.accepted());
}

TEST(SetOrder, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", PlanKind::Safe)
                  .of(Family::Gradients)
                  .empty());
}

TEST(SetOrder, LeavesOtherModulesAlone) {
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::TransformerLayer,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
          "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "one bucket has one order";
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::LayerNormMlp,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true},
           .grad_buckets = 2},
          "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "a set of one module has one order";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::TransformerLayer,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true},
                            .grad_buckets = 2},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "nothing starts within it";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::TransformerLayer,
                            .flags = {.fuse_wgrad_accumulation = true, .wgrad_hooks = true},
                            .grad_buckets = 2},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "B is no set";
}

}  // namespace
}  // namespace capo
