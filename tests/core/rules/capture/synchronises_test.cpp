#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn", .kind = ModuleKind::Linear, .flags = {.synchronises = true}};

TEST(Synchronises, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C02");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` waits for the device, which `1` at index 0 cannot while it is being "
            "captured (cudaErrorStreamCaptureUnsupported)");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{1, 1}, "its capture fails"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "keep the value on the device, or leave the layer out of the graphs"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 0, "1", "F(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(Synchronises, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` waits "
            "for the device, which `1` at index 0 cannot while it is being captured "
            "(cudaErrorStreamCaptureUnsupported)");
  EXPECT_TRUE(checked.accepted());
}

TEST(Synchronises, UnderCaposPlanIsNone) {
  EXPECT_TRUE(check_module(kModule, "[1, -1]", PlanKind::Safe).of(Family::Capture).empty());
}

TEST(Synchronises, LeavesOtherModulesAlone) {
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::Linear}, "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "it does not wait";
}

}  // namespace
}  // namespace capo
