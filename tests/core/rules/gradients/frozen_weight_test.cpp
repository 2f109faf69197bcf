#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn",
    .kind = ModuleKind::Linear,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}};

TEST(FrozenWeight, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G04");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` delays the gradient of a frozen weight: `-1.5` at index 2 takes an "
            "entry from a queue that is empty");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{8, 4}, "nothing is queued for it"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "do not delay the weight gradient of a module with a frozen weight"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 2, "-1.5", "W(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(FrozenWeight, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(
      found[0].message,
      "if these layers are captured as TransformerEngine captures them, module `attn` delays the "
      "gradient of a frozen weight: `-1.5` at index 2 takes an entry from a queue that is empty");
  EXPECT_TRUE(checked.accepted());
}

TEST(FrozenWeight, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1, -1.5]", PlanKind::Safe).of(Family::Gradients).empty());
}

TEST(FrozenWeight, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "a trained weight is queued";
  EXPECT_TRUE(
      check_module({.name = "attn", .kind = ModuleKind::Linear, .flags = {.frozen_weight = true}},
                   "[1, -1]")
          .of(Family::Gradients)
          .empty())
      << "there is no weight gradient to run";
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::GroupedLinear,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
          "[1, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "it looks before it takes";
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::GroupedMlp,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
          "[1, -1, -1.5]")
          .of(Family::Gradients)
          .empty())
      << "so do operations";
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
  EXPECT_EQ(found[0].message,
            "module `attn` delays the gradient of a frozen weight: `-1.5` at index 2 takes two "
            "entries from its queue where one is, and that for the wrong weight");
  EXPECT_EQ(found[0].labels.at(0).text, "mixes up fc1 and fc2");
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

}  // namespace
}  // namespace capo
