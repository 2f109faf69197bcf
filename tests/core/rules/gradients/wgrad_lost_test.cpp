#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn", .kind = ModuleKind::Linear, .flags = {.delay_wgrad = true}};

TEST(WgradLost, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G01");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` loses its weight gradient, which is delayed and not fused: `.grad` is "
            "assigned when `-1.5` at index 3 is captured, and by no replay");
  EXPECT_EQ(found[0].labels,
            (std::vector<Label>{{{11, 4}, "its replays compute a gradient that nobody reads"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{.text =
                "set fuse_wgrad_accumulation, so that the weight gradient adds into main_grad"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 3, "-1.5", "W(c1,m0)"}, {0, 5, "-1.5", "W(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(WgradLost, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` loses "
            "its weight gradient, which is delayed and not fused: `.grad` is assigned when `-1.5` "
            "at index 3 is captured, and by no replay");
  EXPECT_TRUE(checked.accepted());
}

TEST(WgradLost, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", PlanKind::Safe)
                  .of(Family::Gradients)
                  .empty());
}

TEST(WgradLost, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "a fused one adds into main_grad";
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::Linear}, "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "what is not delayed is returned";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinearOp,
                            .flags = {.delay_wgrad = true, .frozen_weight = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "nothing is queued (G04)";
}

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
  const ModuleTable modules{.list = {kModule, other, sound}, .layers = {{{2}, {0}}, {{0}, {1}}}};
  const Checked checked = testing_support::check_in(
      {.modules = modules, .plan = {.kind = PlanKind::Te, .aliases = Aliases{}}},
      "capo 1\nchunks 2\nrank 0: F1 F2 B2 W2 B1 W1\nrank 1: F1 F2 B2 W2 B1 W1\n");
  const auto found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].message,
            "module `attn` loses its weight gradient, which is delayed and not fused: `.grad` is "
            "assigned when `W2` at index 3 of rank 0 is captured, and by no replay");
  EXPECT_EQ(found[1].message,
            "module `mlp` loses its weight gradient, which is delayed and not fused: `.grad` is "
            "assigned when `W2` at index 3 of rank 1 is captured, and by no replay");
}

TEST(WgradLost, LooksAtEveryLayerOfAChunk) {
  const Module sound{.name = "moe",
                     .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}};
  const auto findings = [&](const std::string& text) {
    return testing_support::check_in({.modules = {.list = {sound, kModule}, .layers = {{{0, 1}}}},
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
  const auto found = check_module(kModule, "[1, -1]").of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 1, "-1", "B(c1,m0)"}}));
}

}  // namespace
}  // namespace capo
