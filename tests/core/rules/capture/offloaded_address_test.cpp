#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn", .kind = ModuleKind::Linear, .flags = {.offloaded = true}};

TEST(OffloadedAddress, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C07");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` has tensors that leave the device between forward and backward: replays "
            "of `-1` at index 1 read the addresses that they had at capture");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{4, 2}, "reads where they were"},
                                                 {{1, 1}, "made here, then moved away"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "keep them on the device, or leave the layer out of the graphs"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<TaskReference>{{0, 1, "-1", "B(c1,m0)"}, {0, 0, "1", "F(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(OffloadedAddress, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` has "
            "tensors that leave the device between forward and backward: replays of `-1` at index "
            "1 read the addresses that they had at capture");
  EXPECT_TRUE(checked.accepted());
}

TEST(OffloadedAddress, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Capture).empty());
}

TEST(OffloadedAddress, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::Linear}, "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "they stay";
}

}  // namespace
}  // namespace capo
