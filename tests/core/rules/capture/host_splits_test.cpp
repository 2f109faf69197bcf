#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

const Module kModule{.name = "attn", .kind = ModuleKind::GroupedLinear, .splits = Splits::Host};

TEST(HostSplits, NamesTheModuleAndTheEntry) {
  const Checked checked = check_module(kModule, "[1, -1]");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C01");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "module `attn` takes the sizes of its groups from the CPU: the capture of `1` at index "
            "0 bakes them in, and replays ignore new ones");
  EXPECT_EQ(found[0].labels,
            (std::vector<Label>{{{1, 1}, "groups have the sizes of the capture for ever"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "keep the splits on the device, or leave the layer out of the graphs"}));
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Entries);
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 0, "1", "F(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(HostSplits, WithoutAPlanIsAWarningThatNamesItsCondition) {
  const Checked checked = check_module(kModule, "[1, -1]", std::nullopt);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Warning);
  EXPECT_EQ(found[0].message,
            "if these layers are captured as TransformerEngine captures them, module `attn` takes "
            "the sizes of its groups from the CPU: the capture of `1` at index 0 bakes them in, "
            "and replays ignore new ones");
  EXPECT_TRUE(checked.accepted());
}

TEST(HostSplits, UnderCaposPlanIsAnErrorTooSinceItsSplitPathDoesTheSame) {
  const Checked checked = check_module(kModule, "[1, -1]", PlanKind::Safe);
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_FALSE(checked.accepted());
}

TEST(HostSplits, AGroupedProductInFp32HasNoOtherPath) {
  for (const ModuleKind kind :
       {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp}) {
    const Checked checked = check_module(
        {.name = "experts", .kind = kind, .dtype = DataType::Fp32, .splits = Splits::Device},
        "[1, -1]", PlanKind::Safe);
    const std::vector<Diagnostic> found = checked.of(Family::Capture);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].message,
              "module `experts` takes the sizes of its groups from the CPU, as grouped products in "
              "fp32 do: the capture of `1` at index 0 bakes them in, and replays ignore new ones");
    EXPECT_EQ(found[0].help,
              (Help{.text = "compute in bf16 or fp16, or leave the layer out of the graphs"}));
  }
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::Linear, .dtype = DataType::Fp32},
                           "[1, -1]", PlanKind::Safe)
                  .of(Family::Capture)
                  .empty())
      << "it has no groups";
}

TEST(HostSplits, LeavesOtherModulesAlone) {
  EXPECT_TRUE(
      check_module({.name = "attn", .kind = ModuleKind::GroupedLinear, .splits = Splits::Device},
                   "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "they are on the device";
  EXPECT_TRUE(
      check_module({.name = "attn", .kind = ModuleKind::GroupedLinear, .splits = Splits::Input},
                   "[1, -1]")
          .of(Family::Capture)
          .empty())
      << "they are an input";
  EXPECT_TRUE(check_module({.name = "attn", .kind = ModuleKind::GroupedLinear}, "[1, -1]")
                  .of(Family::Capture)
                  .empty())
      << "nothing is said";
}

}  // namespace
}  // namespace capo
