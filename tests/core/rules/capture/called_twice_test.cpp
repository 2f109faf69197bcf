#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn",
                     .kind = ModuleKind::Linear,
                     .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true},
                     .calls = 3};

TEST(CalledTwice, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C04");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` is called 3 times in one graph and queues as many weight gradients, of "
            "which `-1.5` at index 3 takes one: what is left is taken for a later microbatch's");
  EXPECT_EQ(found[0].labels,
            (std::vector<Label>{{{11, 4}, "takes one entry, and leaves the others"},
                                {{21, 4}, "takes what was left"}}));
  EXPECT_EQ(
      found[0].help,
      (Help{.text = "give every call a module of its own, or do not delay the weight gradient"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 3, "-1.5", "W(c1,m0)"}, {0, 5, "-1.5", "W(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(CalledTwice, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` is "
            "called 3 times in one graph and queues as many weight gradients, of which `-1.5` at "
            "index 3 takes one: what is left is taken for a later microbatch's");
  EXPECT_TRUE(checked.accepted());
}

TEST(CalledTwice, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, 1, -1, -1.5, -1, -1.5]", PlanKind::Safe)
                  .of(Family::Capture)
                  .empty());
}

TEST(CalledTwice, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
                           "[1, 1, -1, -1.5, -1, -1.5]")
                  .of(Family::Capture)
                  .empty())
      << "it is called once";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .flags = {.fuse_wgrad_accumulation = true},
                            .calls = 3},
                           "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "B runs them all";
  EXPECT_TRUE(
      check_module(
          {.name = "attn",
           .kind = ModuleKind::GroupedLinear,
           .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true},
           .calls = 3},
          "[1, 1, -1, -1.5, -1, -1.5]")
          .of(Family::Capture)
          .empty())
      << "nothing is queued";
}

}  // namespace
}  // namespace capo
