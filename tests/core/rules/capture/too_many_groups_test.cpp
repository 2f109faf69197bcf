#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn",
                     .kind = ModuleKind::GroupedLinear,
                     .shape = {.groups = 65},
                     .splits = Splits::Device};

TEST(TooManyGroups, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C05");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` has 65 groups with a weight each: the grouped product of `1` at index 0 "
            "takes at most 64");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{1, 1}, "this product has too many weights"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "set single_weight, one parameter for all groups, or split the module"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 0, "1", "F(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(TooManyGroups, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` has 65 "
            "groups with a weight each: the grouped product of `1` at index 0 takes at most 64");
  EXPECT_TRUE(checked.accepted());
}

TEST(TooManyGroups, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Capture).empty());
}

TEST(TooManyGroups, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinear,
                            .shape = {.groups = 64},
                            .splits = Splits::Device},
                           "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "64 are not too many";
  EXPECT_TRUE(
      check_module({.name = "attn", .kind = ModuleKind::GroupedLinear, .shape = {.groups = 65}},
                   "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "the split path has a product for each";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::GroupedLinear,
                            .shape = {.groups = 65},
                            .flags = {.single_weight = true},
                            .splits = Splits::Input},
                           "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "one weight has one address";
  EXPECT_TRUE(check_module({.name = "attn",
                            .kind = ModuleKind::Linear,
                            .shape = {.groups = 65},
                            .splits = Splits::Input},
                           "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "it is not a grouped product";
}

}  // namespace
}  // namespace capo
