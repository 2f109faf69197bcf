#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// All tensors between layers take 2 MiB, the normed input that it keeps too.
Module block() {
  return {.name = "block",
          .kind = ModuleKind::LayerNormLinear,
          .dtype = DataType::Bf16,
          .shape = {.tokens = 1024, .hidden = 1024, .ffn = 1024},
          .bytes = {.weight = 2 * kMiB}};
}

Checked check_budget(std::optional<std::int64_t> budget, const std::string& text,
                     PlanKind plan = PlanKind::Te) {
  return check_in(
      {.modules = {.list = {block()}, .layers = {{{0}}}}, .plan = {.kind = plan, .budget = budget}},
      text);
}

TEST(OverBudget, ShowsThePeakAndTheLeast) {
  const Checked checked = check_budget(24 * kMiB, "[1, 1, 1, 1, -1, -1, -1, -1]");
  ASSERT_EQ(checked.findings(), Findings{"B08@4"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "rank 0 needs 30 MiB at `-1` at index 4, more than the budget of 24 MiB: 28 MiB of "
            "buffers and 2 MiB of weights");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{13, 2}, "the peak is reached here"}}));
  ASSERT_EQ(finding.notes.size(), 1u);
  EXPECT_NE(finding.notes.at(0).text.find("30 MiB"), std::string::npos) << finding.notes.at(0).text;
  EXPECT_EQ(finding.help, (Help{.text = "fewer microbatches in flight, or smaller ones"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{0, 4, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(OverBudget, CountsWeightsAndFitsToTheByte) {
  const std::string order = "[1, 1, 1, 1, -1, -1, -1, -1]";
  EXPECT_TRUE(check_budget(30 * kMiB, order).accepted());
  EXPECT_EQ(check_budget(30 * kMiB - 1, order).findings(), Findings{"B08@4"});
}

TEST(OverBudget, IsCuredByFewerInFlight) {
  EXPECT_TRUE(check_budget(24 * kMiB, "[1, -1, 1, -1, 1, -1, 1, -1]").accepted());
}

TEST(OverBudget, NamesCaposPlanWhereThatFits) {
  const Checked checked = check_budget(13 * kMiB, "[1, -1, 1, -1]");
  ASSERT_EQ(checked.findings().size(), 1u);
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).help.text,
            "capo's own plan may fit: --plan safe");
  EXPECT_TRUE(check_budget(13 * kMiB, "[1, -1, 1, -1]", PlanKind::Safe).accepted());
}

TEST(OverBudget, IsAMatterOfCaposPlanToo) {
  const Checked checked = check_budget(24 * kMiB, "[1, 1, 1, 1, -1, -1, -1, -1]", PlanKind::Safe);
  ASSERT_EQ(checked.findings(), Findings{"B08@4"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).help.text,
            "fewer microbatches in flight, or smaller ones");
}

TEST(OverBudget, IsOneFindingForEachRank) {
  const Checked checked = check_budget(20 * kMiB,
                                       "capo 1\n"
                                       "rank 0: F1 F1 F1 B1 B1 B1\n"
                                       "rank 1: F1 B1 F1 B1 F1 B1\n"
                                       "rank 2: F1 F1 F1 B1 B1 B1\n");
  ASSERT_EQ(checked.findings(), (Findings{"B08@3", "B08@3"}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(1).message,
      "rank 2 needs 24 MiB at `B1` at index 3 of rank 2, more than the budget of 20 MiB: 22 MiB "
      "of buffers and 2 MiB of weights");
}

TEST(OverBudget, CountsEveryLayer) {
  EXPECT_TRUE(check_budget(14 * kMiB, "capo 1\nlayers 1\nrank 0: F1 B1\n").accepted());
  EXPECT_FALSE(check_budget(14 * kMiB, "capo 1\nlayers 2\nrank 0: F1 B1\n").accepted());
}

TEST(OverBudget, NeedsABudgetAPlanAndSizes) {
  const std::string order = "[1, 1, -1, -1]";
  EXPECT_TRUE(check_budget(std::nullopt, order).accepted());
  EXPECT_TRUE(
      check_in({.modules = {.list = {block()}, .layers = {{{0}}}}, .plan = {.budget = 1}}, order)
          .findings()
          .empty());
}

TEST(OverBudget, WarnsOfSizesThatNobodyDeclared) {
  const Checked bare = check_in({.plan = {.kind = PlanKind::Te, .budget = 1}}, "[1, -1]");
  EXPECT_TRUE(bare.accepted());
  ASSERT_EQ(bare.findings(), (Findings{"B08@-"}));
  EXPECT_EQ(bare.result.diagnostics.kept().front().message,
            "the budget of 1 B cannot be held against sizes that nobody declared");
  Module unsized = block();
  unsized.shape.tokens.reset();
  const Checked half = check_in({.modules = {.list = {block(), unsized}, .layers = {{{0}, {1}}}},
                                 .plan = {.kind = PlanKind::Te, .budget = 1}},
                                "[1, 2, -2, -1]");
  EXPECT_TRUE(half.accepted()) << "one of the layers has no size";
  EXPECT_EQ(half.findings(), (Findings{"B08@-"}));
}

// Of several layers in a composite capo's plan holds more than has to be.
TEST(OverBudget, NamesNoOtherPlanWhereItIsCaposThatDoesNotFit) {
  const std::string order = "capo 1\nlayers 2\nrank 0: F1 (F1 B1) B1\n";
  const Checked fits = check_budget(std::nullopt, order, PlanKind::Safe);
  ASSERT_TRUE(fits.result.plan);
  const RankMemory& memory = fits.result.plan->ranks.at(0);
  const std::int64_t least = memory.lower_bound + memory.weights;
  ASSERT_LT(least, memory.peak() + memory.weights);
  const Checked checked = check_budget(least, order, PlanKind::Safe);
  ASSERT_EQ(checked.findings().size(), 1u);
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).help.text,
            "fewer microbatches in flight, or smaller ones");
}

}  // namespace
}  // namespace capo
