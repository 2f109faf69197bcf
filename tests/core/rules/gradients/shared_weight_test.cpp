#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;

const Module kTied{.name = "tied", .flags = {.delay_wgrad = true, .shared_weight = true}};

Checked check_table(const std::string& text, const ModuleTable& modules, PlanOptions plan = {}) {
  return check_in({.modules = modules, .plan = std::move(plan)}, text,
                  {.form = TextForm::TorchCsv});
}

const ModuleTable kTwice{.list = {kTied}, .layers = {{{0, 0}}}};

TEST(SharedWeight, NamesTheModuleAndTheStage) {
  const Checked checked = check_table("0F0,0I0,0W0\n", kTwice);
  const auto found = checked.of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G06");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].message,
            "`0W0` at index 2 counts a weight of module `tied` twice, which two layers of stage 0 "
            "share: PyTorch's split backward passes the earlier layer again on its way from the "
            "later one");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{8, 3}, "adds one use of the weight twice"}}));
  EXPECT_EQ(found[0].help, (Help{.text = "run this stage's backward whole, or give each layer a "
                                         "weight of its own"}));
  EXPECT_EQ(found[0].witness.tasks, (std::vector<TaskReference>{{0, 2, "0W0", "W(c1,m0)"}}));
}

TEST(SharedWeight, ConcernsTwoLayersOfOneStage) {
  EXPECT_TRUE(check_table("0F0,0I0,0W0\n", {.list = {kTied}, .layers = {{{0}}}})
                  .of(Family::Gradients)
                  .empty());
  Module other = kTied;
  other.name = "other";
  EXPECT_TRUE(check_table("0F0,0I0,0W0\n", {.list = {kTied, other}, .layers = {{{0, 1}}}})
                  .of(Family::Gradients)
                  .empty())
      << "nobody says that these two share";
}

TEST(SharedWeight, AcceptsAWholeBackward) {
  EXPECT_TRUE(check_table("0F0,0B0\n", kTwice).of(Family::Gradients).empty());
}

TEST(SharedWeight, IsAFindingOfEachModule) {
  EXPECT_EQ(check_table("0F0,0F1,0I0,0W0,0I1,0W1,1F0,1F1,1I0,1W0,1I1,1W1\n", kTwice)
                .of(Family::Gradients)
                .size(),
            1u);
}

TEST(SharedWeight, LeavesTheQueueOfTransformerEngineAlone) {
  const auto found =
      check_table("0F0,0I0,0W0\n", kTwice, {.kind = PlanKind::Te}).of(Family::Gradients);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G01") << "there it is lost, like any other";
  EXPECT_TRUE(
      check_table("0F0,0I0,0W0\n", kTwice, {.kind = PlanKind::Safe}).of(Family::Gradients).empty());
  const auto listed = check_in({.modules = kTwice}, "[1, -1, -1.5]").of(Family::Gradients);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].rule, "G01") << "a list is not run by PyTorch";
}

TEST(SharedWeight, JudgesATableWithTransfers) {
  const std::string table = "0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n";
  const ModuleTable both{.list = {kTied}, .layers = {{{0, 0}}, {{0, 0}}}};
  EXPECT_EQ(check_table(table, both).of(Family::Gradients).size(), 1u);
}

// Their faults, if any, are other rules'.
TEST(SharedWeight, ConcernsWeightsThatAreTrainedDelayedAndAddedByAutograd) {
  const auto breaks = [](auto change) {
    Module module = kTied;
    change(module.flags);
    const auto found = check_table("0F0,0I0,0W0\n", {.list = {module}, .layers = {{{0, 0}}}})
                           .of(Family::Gradients);
    return std::any_of(found.begin(), found.end(),
                       [](const Diagnostic& finding) { return finding.rule == "G06"; });
  };
  EXPECT_TRUE(breaks([](ModuleFlags&) {}));
  EXPECT_FALSE(breaks([](ModuleFlags& flags) { flags.delay_wgrad = false; }));
  EXPECT_FALSE(breaks([](ModuleFlags& flags) { flags.fuse_wgrad_accumulation = true; }));
  EXPECT_FALSE(breaks([](ModuleFlags& flags) { flags.frozen_weight = true; }));
}

}  // namespace
}  // namespace capo
