#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Module layer(bool input, bool output) {
  Module module{.name = "sliced", .kind = ModuleKind::LayerNormLinear};
  module.flags.contiguous_input = input;
  module.flags.contiguous_output = output;
  return module;
}

Checked check_layer(const Module& module, const std::string& text,
                    std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in({.modules = {.list = {module}, .layers = {{{0}}}}, .plan = {.kind = plan}}, text);
}

TEST(StridesLost, NamesTheModuleAndItsFirstGraph) {
  const Checked checked = check_layer(layer(true, false), "[1, 1, -1, -1]");
  ASSERT_EQ(checked.findings(), Findings{"B07@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "the output of module `sliced`, first at `1` at index 0, is not contiguous, and its graph "
      "forgets the strides: what is read of it is permuted");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{1, 1}, "captured here"}}));
  EXPECT_EQ(finding.help, (Help{.text = "make the output contiguous inside the module"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{0, 0, "1", "F(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(StridesLost, OfAnInputConcernsItsGradient) {
  const Checked checked = check_layer(layer(false, true), "[1, -1]");
  ASSERT_EQ(checked.findings(), Findings{"B07@0"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "the input of module `sliced`, first at `1` at index 0, is not contiguous, and its graph "
      "forgets the strides: what is read of its gradient is permuted");
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).help.text,
            "make the input contiguous inside the module");
}

TEST(StridesLost, IsOneFindingForEachEnd) {
  EXPECT_EQ(check_layer(layer(false, false), "[1, 1, -1, -1]").findings(),
            (Findings{"B07@0", "B07@0"}));
}

TEST(StridesLost, IsNoneOfContiguousTensors) {
  EXPECT_TRUE(check_layer(layer(true, true), "[1, 1, -1, -1]").findings().empty());
}

TEST(StridesLost, IsShownOnceForAllRanksAndLayers) {
  const Checked checked = check_in({.modules = {.list = {layer(true, true), layer(true, false)},
                                                .layers = {{{0}}, {{0, 1}}, {{1}}}},
                                    .plan = {.kind = PlanKind::Te}},
                                   "capo 1\nrank 0 layers 1\nrank 1 layers 2\nrank 2 layers 1\n"
                                   "rank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\nrank 2: F1.0 B1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"B07@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).witness.tasks,
            (std::vector<TaskReference>{{1, 0, "F1.0", "F(c1,m0)"}}));
}

TEST(StridesLost, WithoutAPlanOrUnderCaposIsNone) {
  EXPECT_TRUE(check_layer(layer(true, false), "[1, -1]", std::nullopt).findings().empty());
  EXPECT_TRUE(check_layer(layer(true, false), "[1, -1]", PlanKind::Safe).findings().empty());
}

}  // namespace
}  // namespace capo
