// The rules of core/rules/capture.cpp beyond their rows in module_rules_test.cpp.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::check_module;
using testing_support::Checked;

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

TEST(NoGradient, OfADelayedModuleIsNoneEvenWithABias) {
  EXPECT_EQ(check_module({.name = "attn",
                          .kind = ModuleKind::Linear,
                          .flags = {.delay_wgrad = true,
                                    .fuse_wgrad_accumulation = true,
                                    .bias = true,
                                    .input_requires_grad = false}},
                         "[1, -1, -1.5]")
                .of(Family::Capture)
                .size(),
            1u);
  EXPECT_EQ(check_module({.name = "attn",
                          .kind = ModuleKind::GroupedLinearOp,
                          .flags = {.delay_wgrad = true,
                                    .fuse_wgrad_accumulation = true,
                                    .bias = true,
                                    .input_requires_grad = false}},
                         "[1, -1, -1.5]")
                .of(Family::Capture)
                .size(),
            0u)
      << "B makes the bias gradient of an operation";
}

Checked check_order(const std::string& ranks, std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in({.plan = {.kind = plan}}, "capo 1\nchunks 1\nmixed 1\n" + ranks,
                  {.form = TextForm::OrderFile});
}

TEST(HalfDelayed, NamesTheFirstBackwardThatIsAtOdds) {
  const Checked checked = check_order("rank 0: F1.0 F1.1 I1.0 W1.0 B1.1\n");
  const std::vector<Diagnostic> found = checked.of(Family::Capture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "C08");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].witness.tasks,
            (std::vector<WitnessEntry>{{0, 2, "I1.0", "I(c1,m0)"}, {0, 4, "B1.1", "B(c1,m1)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(HalfDelayed, NamesTheInputHalfWhereThatIsTheLater) {
  const Checked checked = check_order("rank 0: F1.0 F1.1 B1.1 I1.0 W1.0\n");
  ASSERT_EQ(checked.findings(), std::vector<std::string>{"C08@2"});
  EXPECT_EQ(
      checked.first().message,
      "`I1.0` at index 3 leaves its weight gradient to W, and `B1.1` before it is a whole one: "
      "TransformerEngine captures the modules of a chunk with delay_wgrad_compute or without");
}

TEST(HalfDelayed, IsOneFindingForEachChunkOfARank) {
  const Checked checked = check_in({.plan = {.kind = PlanKind::Te}},
                                   "capo 1\nranks 2\nchunks 2\nmixed 1 2\n"
                                   "rank 0: F1.0 F1.1 F1.2 I1.0 W1.0 B1.1 B1.2 "
                                   "F2.0 F2.1 F2.2 B2.0 I2.1 W2.1 I2.2 W2.2\n"
                                   "rank 1: F1.0 F1.1 F1.2 I1.0 W1.0 I1.1 W1.1 B1.2 "
                                   "F2.0 F2.1 F2.2 B2.0 B2.1 B2.2\n",
                                   {.form = TextForm::OrderFile});
  EXPECT_EQ(checked.of(Family::Capture).size(), 3u);
}

TEST(HalfDelayed, LeavesChunksAloneThatSplitAllBackwardsOrNone) {
  EXPECT_TRUE(check_order("rank 0: F1.0 F1.1 I1.0 W1.0 I1.1 W1.1\n").accepted());
  EXPECT_TRUE(check_order("rank 0: F1.0 F1.1 B1.0 B1.1\n").accepted());
}

TEST(HalfDelayed, IsAboutTransformerEnginesPlanAlone) {
  const std::string order = "rank 0: F1.0 F1.1 I1.0 W1.0 B1.1\n";
  EXPECT_TRUE(check_order(order, std::nullopt).accepted());
  EXPECT_TRUE(check_order(order, PlanKind::Safe).accepted());
  EXPECT_TRUE(check_order(order, std::nullopt).of(Family::Capture).empty());
}

TEST(HalfDelayed, SaysNothingOfAReplayOrder) {
  const Checked checked =
      check_order("rank 0: F1.0 F1.1 B1.1 I1.0 W1.0\nrank 0 replay: F1.0 F1.1 I1.0 W1.0 B1.1\n");
  EXPECT_EQ(checked.of(Family::Capture).size(), 1u);
}

TEST(NotLocal, NamesTheFirstWeightGradientOfEachChunk) {
  const Checked checked = check_order("rank 0: F1.0 F1.1 B1.1 I1.0 W1.0\n", PlanKind::McoreLocal);
  ASSERT_EQ(checked.findings(), std::vector<std::string>{"C11@4"});
  EXPECT_EQ(checked.first().severity, Severity::Error);
  EXPECT_EQ(checked.first().witness.tasks, (std::vector<WitnessEntry>{{0, 4, "W1.0", "W(c1,m0)"}}));
  const Checked two = check_in({.plan = {.kind = PlanKind::McoreLocal}},
                               "[1, 2, -2, -2.5, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]");
  EXPECT_EQ(two.of(Family::Capture).size(), 2u);
}

TEST(NotLocal, LeavesWholeBackwardsAlone) {
  EXPECT_TRUE(check_order("rank 0: F1.0 F1.1 B1.0 B1.1\n", PlanKind::McoreLocal).accepted());
}

}  // namespace
}  // namespace capo
