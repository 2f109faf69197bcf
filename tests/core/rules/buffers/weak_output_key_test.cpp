#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Module layer(const char* name, std::int64_t position) {
  return {.name = name, .kind = ModuleKind::LayerNormMlp, .output_position = position};
}

Checked check_pair(const Module& first, const Module& second, const std::string& text,
                   std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in(
      {.modules = {.list = {first, second}, .layers = {{{0}, {1}}}}, .plan = {.kind = plan}}, text);
}

const Module kDense = layer("dense", 0);
const Module kExperts = layer("moe", 1);

TEST(WeakOutputKey, ShowsBothGraphs) {
  const Checked checked = check_pair(kDense, kExperts, "[1, 2, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"B06@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "module `dense` at `-1` at index 3 shares the incoming gradients of module `moe` at `-2` "
      "at index 2, whose output 1 needs one where its own is output 0: it reads zeros");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{11, 2}, "reads the wrong gradient"},
                                                {{7, 2}, "its tuple is shared"}}));
  EXPECT_TRUE(finding.notes.empty());
  EXPECT_EQ(finding.help, (Help{.text = "return the outputs of both modules in the same order"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{{0, 2, "-2", "B(c2,m0)"}, {0, 3, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(WeakOutputKey, IsNoneWherePositionsAgree) {
  EXPECT_TRUE(check_pair(layer("other", 1), kExperts, "[1, 2, -2, -1]").findings().empty());
}

TEST(WeakOutputKey, IsNoneWhereOutputsAreToldApart) {
  const auto findings = [](const Module& dense, const Module& experts) {
    return check_pair(dense, experts, "[1, 2, -2, -1]").findings();
  };
  Module narrow = kExperts;
  narrow.shape.hidden = 32;
  Module wide = kDense;
  wide.shape.hidden = 64;
  EXPECT_EQ(findings(wide, narrow), Findings{});
  EXPECT_EQ(findings(wide, kExperts), Findings{"B06@2"}) << "which may be as wide";
  Module half = kExperts;
  half.dtype = DataType::Bf16;
  Module single = kDense;
  single.dtype = DataType::Fp32;
  EXPECT_EQ(findings(single, half), Findings{});
  EXPECT_EQ(findings(single, kExperts), Findings{"B06@2"});
}

TEST(WeakOutputKey, GoesByTheFirstBackward) {
  const Checked checked = check_pair(kDense, kExperts, "[1, -1, 2, -2, 1, -1, 2, -2]");
  ASSERT_EQ(checked.findings(), Findings{"B06@1"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "module `moe` at `-2` at index 3 shares the incoming gradients of module `dense` at `-1` "
      "at index 1, whose output 0 needs one where its own is output 1: it reads zeros");
}

TEST(WeakOutputKey, LooksAtEveryRankAndLayer) {
  const Checked checked =
      check_in({.modules = {.list = {kDense, kExperts}, .layers = {{{0}}, {{0, 1}}}},
                .plan = {.kind = PlanKind::Te}},
               "capo 1\nrank 0 layers 1\nrank 1 layers 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"B06@1"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "module `dense` at `B1.0` at index 1 of rank 1 shares the incoming gradients of module "
      "`moe` at `B1.0` at index 1 of rank 1, whose output 1 needs one where its own is output "
      "0: it reads zeros");
}

TEST(WeakOutputKey, WithoutAPlanOrUnderCaposIsNone) {
  EXPECT_TRUE(check_pair(kDense, kExperts, "[1, 2, -2, -1]", std::nullopt).findings().empty());
  EXPECT_TRUE(check_pair(kDense, kExperts, "[1, 2, -2, -1]", PlanKind::Safe).findings().empty());
}

TEST(WeakOutputKey, SaysNothingOfALayerThatIsNotDeclared) {
  EXPECT_TRUE(check_pair(kDense, kDense, "[1, 2, 3, -3, -2, -1]").accepted());
}

}  // namespace
}  // namespace capo
