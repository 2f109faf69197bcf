#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr Aliases kGradient{.grad_output = true};
constexpr const char* kLate = "[1, 2, -2, -1, -2.5, -1.5]";

Checked check_plan(const PlanOptions& plan, const std::string& text) {
  return check_in({.plan = plan}, text);
}

Checked check_te_plan(const std::string& text) {
  return check_plan({.kind = PlanKind::Te, .aliases = kGradient}, text);
}

TEST(GradOutputReuse, ShowsWhoWroteWhoTookAndWhoReads) {
  const Checked checked = check_te_plan(kLate);
  ASSERT_EQ(checked.findings(), Findings{"B02@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "`-2.5` at index 4 reads the grad output of chunk 2, microbatch 0, which `-1` at index 3 "
      "has overwritten");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{15, 4}, "it is read here"},
                                                {{11, 2},
                                                 "its memory goes to the grad output of chunk 1, "
                                                 "microbatch 0"},
                                                {{7, 2}, "it is written here"}}));
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{{.text = "TransformerEngine has one static gradient for each signature "
                                  "of outputs; every backward copies its own into it"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `-2.5` at index 4 before `-1` at index 3"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{
                {0, 2, "-2", "B(c2,m0)"}, {0, 3, "-1", "B(c1,m0)"}, {0, 4, "-2.5", "W(c2,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(GradOutputReuse, IsNoneWhereTheWeightGradientFollowsItsBackward) {
  EXPECT_TRUE(check_te_plan("[1, 2, -2, -2.5, -1, -1.5]").findings().empty());
  EXPECT_TRUE(
      check_te_plan("[1, 2, -2, 1, -2.5, 2, -1, -1.5, -2, -2.5, -1, -1.5]").findings().empty())
      << "a forward between them does not matter";
}

TEST(GradOutputReuse, ConcernsReadersOfTheGradientItself) {
  EXPECT_TRUE(check_plan({.kind = PlanKind::Te, .aliases = Aliases{}}, kLate).findings().empty());
  EXPECT_TRUE(check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}}, kLate)
                  .findings()
                  .empty());
}

TEST(GradOutputReuse, KnowsModulesThatReadIt) {
  const auto findings = [](const Module& module) {
    return check_in(
               {.modules = {.list = {module}, .layers = {{{0}}}}, .plan = {.kind = PlanKind::Te}},
               kLate)
        .of(Family::Buffers)
        .size();
  };
  const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::LayerNormMlp, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::Linear, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::GroupedMlp, .flags = sound}), 0u);
  EXPECT_EQ(
      findings(
          {.name = "m", .kind = ModuleKind::LayerNormMlp, .dtype = DataType::Fp8, .flags = sound}),
      0u);
  ModuleFlags gathered = sound;
  gathered.gathered_grad_output = true;
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::LayerNormMlp, .flags = gathered}), 0u);
}

TEST(GradOutputReuse, TellsShapesApart) {
  const auto findings = [](std::int64_t columns) {
    const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
    const ModuleTable modules{.list = {{.name = "a",
                                        .kind = ModuleKind::LayerNormLinear,
                                        .shape = {.tokens = 16, .ffn = 64},
                                        .flags = sound},
                                       {.name = "b",
                                        .kind = ModuleKind::LayerNormLinear,
                                        .shape = {.tokens = 16, .ffn = columns},
                                        .flags = sound}},
                              .layers = {{{0}, {1}}}};
    return check_in({.modules = modules, .plan = {.kind = PlanKind::Te}}, kLate).findings();
  };
  EXPECT_EQ(findings(64), Findings{"B02@2"});
  EXPECT_EQ(findings(32), Findings{});
}

TEST(GradOutputReuse, WithoutADeclarationIsAWarning) {
  const Checked no_operands = check_plan({.kind = PlanKind::Te}, kLate);
  ASSERT_EQ(no_operands.findings(), Findings{"B02@2"});
  EXPECT_EQ(no_operands.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_TRUE(no_operands.result.diagnostics.kept().at(0).message.starts_with(
      "if the module reads the incoming gradient itself there, `-2.5` at index 4 reads"));
  EXPECT_TRUE(no_operands.accepted());
  const Checked no_plan = check_plan({}, kLate);
  ASSERT_EQ(no_plan.findings(), Findings{"B02@2"});
  EXPECT_EQ(no_plan.result.diagnostics.kept().at(0).message,
            "under TransformerEngine's reuse of buffers, if the module reads the incoming gradient "
            "itself there, `-2.5` at index 4 reads the grad output of chunk 2, microbatch 0, which "
            "`-1` at index 3 has overwritten");
  EXPECT_TRUE(no_plan.accepted());
}

TEST(GradOutputReuse, UnderCaposPlanIsNone) {
  const Checked checked = check_plan({.kind = PlanKind::Safe, .aliases = kGradient}, kLate);
  EXPECT_TRUE(checked.findings().empty());
  EXPECT_TRUE(checked.accepted());
}

TEST(GradOutputReuse, LooksAtEveryRankByItself) {
  const Checked checked = check_te_plan(
      "capo 1\nchunks 2\n"
      "rank 0: F1.0 F2.0 B2.0 W2.0 B1.0 W1.0\n"
      "rank 1: F1.0 F2.0 B2.0 B1.0 W2.0 W1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"B02@2"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`W2.0` at index 4 of rank 1 reads the grad output of chunk 2, microbatch 0, which `B1.0` "
      "at index 3 of rank 1 has overwritten");
}

TEST(GradOutputReuse, HappensBetweenTheLayersOfOneChunk) {
  // The backward of layer 0 runs behind that of layer 1, within one graph.
  const Checked checked = check_te_plan("capo 1\nlayers 2\nrank 0: F1 B1 W1\n");
  ASSERT_EQ(checked.findings(), Findings{"B02@1"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`W1` at index 2 reads the grad output of chunk 1, layer 1, microbatch 0, which `B1` at "
      "index 1 has overwritten");
}

TEST(GradOutputReuse, StandsBesideStaticInputReuse) {
  const Checked checked = check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}},
                                     "[1, -1, 2, -2, -1.5, -2.5]");
  EXPECT_EQ(checked.findings(), (Findings{"B01@0", "B02@1"}));
}

}  // namespace
}  // namespace capo
