#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn",
                     .kind = ModuleKind::GroupedMlp,
                     .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
                     .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}};

TEST(MainGradLayout, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G07");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` cannot accumulate the gradient of its one weight at `-1` at index 1: "
            "main_grad of shape (4, 64, 32) with strides (2048, 1, 64) cannot be viewed as (groups "
            "4, out 64, in 32): as that it has strides (2048, 1, 64) and not (2048, 32, 1), so its "
            "elements do not lie one behind another; the gradient goes to a copy without a word, "
            "and main_grad never changes");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{4, 2}, "writes to this main_grad"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "give the parameter a contiguous main_grad of shape (groups, out, in)"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 1, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(MainGradLayout, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(
      found[0].message,
      "if these layers are captured as TransformerEngine captures them, module `attn` cannot "
      "accumulate the gradient of its one weight at `-1` at index 1: main_grad of shape (4, 64, "
      "32) with strides (2048, 1, 64) cannot be viewed as (groups 4, out 64, in 32): as that it "
      "has strides (2048, 1, 64) and not (2048, 32, 1), so its elements do not lie one behind "
      "another; the gradient goes to a copy without a word, and main_grad never changes");
  EXPECT_TRUE(checked.accepted());
}

TEST(MainGradLayout, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Gradients).empty());
}

TEST(MainGradLayout, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedMlp,
                            .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
                            .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 32, 1}}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "it is contiguous";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedMlp,
                            .flags = {.fuse_wgrad_accumulation = true},
                            .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "each weight has its own";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedMlp,
                            .flags = {.single_weight = true},
                            .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "nobody writes it";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedMlp,
                            .flags = {.fuse_wgrad_accumulation = true, .single_weight = true}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "nothing is declared of it";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinear,
                            .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
                            .main_grad = MainGrad{.shape = {256, 32}, .strides = {64, 1}}},
                           "[1, -1]")
                  .of(Family::Gradients)
                  .empty())
      << "the sizes of the weight are not known";
}

TEST(MainGradLayout, SaysWhatTransformerEngineDoesWithIt) {
  Module module = kModule;
  module.kind = ModuleKind::GroupedLinear;
  module.shape = {.hidden = 32, .ffn = 64, .groups = 4};
  const auto message = [&](const MainGrad& main_grad) {
    module.main_grad = main_grad;
    const auto found = check_module(module, "[1, -1]").of(Family::Gradients);
    return found.size() == 1 ? found[0].message : "";
  };
  EXPECT_TRUE(message({.shape = {4, 64, 32}, .strides = {2048, 1, 64}})
                  .ends_with("; backward fails in view(-1)"));
  EXPECT_TRUE(
      message({.shape = {256, 32}, .strides = {64, 1}}).ends_with("; backward fails in view(-1)"));
  EXPECT_TRUE(message({.shape = {100}, .strides = {1}})
                  .ends_with("; TransformerEngine refuses it in backward"));
  EXPECT_EQ(message({.shape = {8192}, .strides = {1}}), "") << "it can be viewed so";
  module.kind.reset();
  EXPECT_NE(message({.shape = {256, 32}, .strides = {64, 1}}), "");
}

TEST(MainGradLayout, TakesTheShapeOfTheModuleWhereAllOfItIsDeclared) {
  Module module = kModule;
  module.kind = ModuleKind::GroupedLinear;
  module.shape = {.hidden = 32, .ffn = 64, .groups = 4};
  module.main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 32, 1}};
  EXPECT_TRUE(check_module(module, "[1, -1]").of(Family::Gradients).empty());
  module.shape.ffn = 63;
  for (auto* size : {&module.shape.groups, &module.shape.ffn, &module.shape.hidden}) {
    const auto kept = *size;
    size->reset();
    EXPECT_TRUE(check_module(module, "[1, -1]").of(Family::Gradients).empty())
        << "that of main_grad itself";
    *size = kept;
  }
  EXPECT_EQ(check_module(module, "[1, -1]").of(Family::Gradients).size(), 1u);
}

TEST(MainGradLayout, SaysNothingOfWhatTransformerEngineDoesWithAModuleWithoutGroups) {
  Module module = kModule;
  module.kind = ModuleKind::Linear;
  const auto found = check_module(module, "[1, -1]").of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G07");
  EXPECT_EQ(found[0].message.find(';'), std::string::npos) << found[0].message;
}

TEST(MainGradLayout, LeavesAFrozenWeight) {
  Module module = kModule;
  module.flags.frozen_weight = true;
  const auto found = check_module(module, "[1, -1]").of(Family::Gradients);
  EXPECT_TRUE(std::none_of(found.begin(), found.end(),
                           [](const Diagnostic& finding) { return finding.rule == "G07"; }));
}

}  // namespace
}  // namespace capo
