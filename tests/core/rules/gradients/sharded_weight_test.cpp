#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{
    .name = "attn",
    .kind = ModuleKind::Linear,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .sharded_weight = true}};

TEST(ShardedWeight, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G11");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` delays the gradient of a distributed weight to `-1.5` at index 2: its "
            "gradient is never scattered");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{8, 4}, "nothing scatters what this makes"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "do not delay the weight gradient of a distributed weight"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 2, "-1.5", "W(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(ShardedWeight, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(
      found[0].message,
      "if these layers are captured as TransformerEngine captures them, module `attn` delays the "
      "gradient of a distributed weight to `-1.5` at index 2: its gradient is never scattered");
  EXPECT_TRUE(checked.accepted());
}

TEST(ShardedWeight, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1, -1.5]", PlanKind::Safe).of(Family::Gradients).empty());
}

TEST(ShardedWeight, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.fuse_wgrad_accumulation = true, .sharded_weight = true}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "B scatters it";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, -1, -1.5]")
                  .of(Family::Gradients)
                  .empty())
      << "there is nothing to scatter";
}

TEST(ShardedWeight, SaysWhatBecomesOfItByKind) {
  const auto ends = [](std::optional<ModuleKind> kind, std::string_view with) {
    Module module = kModule;
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
