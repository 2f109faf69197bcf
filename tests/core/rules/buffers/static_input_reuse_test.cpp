#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr Aliases kInput{.input = true};
constexpr const char* kLate = "[1, -1, 1, -1.5, -1, -1.5]";

Checked check_plan(const PlanOptions& plan, const std::string& text) {
  return check_in({.plan = plan}, text);
}

Checked check_te_plan(const std::string& text) {
  return check_plan({.kind = PlanKind::Te, .aliases = kInput}, text);
}

TEST(StaticInputReuse, ShowsWhoWroteWhoTookAndWhoReads) {
  const Checked checked = check_te_plan(kLate);
  ASSERT_EQ(checked.findings(), Findings{"B01@0"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "`-1.5` at index 3 reads the static input of chunk 1, microbatch 0, which `1` at index 2 "
      "has overwritten");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{11, 4}, "it is read here"},
                                                {{8, 1},
                                                 "its memory goes to the static input of chunk 1, "
                                                 "microbatch 1"},
                                                {{1, 1}, "it is written here"}}));
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{
          {.text = "TransformerEngine frees a static input at its backward, not at its weight "
                   "gradient; the next forward of the same signature takes the oldest that is "
                   "free"}}));
  EXPECT_EQ(finding.help, (Help{.text = "move `-1.5` at index 3 before `1` at index 2"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{
                {0, 0, "1", "F(c1,m0)"}, {0, 2, "1", "F(c1,m1)"}, {0, 3, "-1.5", "W(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(StaticInputReuse, IsNoneWhereTheWeightGradientComesFirst) {
  EXPECT_TRUE(check_te_plan("[1, -1, -1.5, 1, -1, -1.5]").findings().empty());
  EXPECT_TRUE(check_te_plan("[1, 1, -1, -1.5, -1, -1.5]").findings().empty());
}

TEST(StaticInputReuse, TakesTheOldestThatIsFree) {
  // The third forward gets the input of microbatch 0, whose weight gradient is over.
  EXPECT_TRUE(check_te_plan("[1, 1, -1, -1.5, -1, 1, -1.5, -1, -1.5]").findings().empty());
  EXPECT_EQ(check_te_plan("[1, 1, -1, -1.5, -1, 1, 1, -1.5, -1, -1.5, -1, -1.5]").findings(),
            Findings{"B01@1"});
}

TEST(StaticInputReuse, GoesAcrossChunks) {
  const Checked checked = check_te_plan("[1, -1, 2, -1.5, -2, -2.5]");
  ASSERT_EQ(checked.findings(), Findings{"B01@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).labels.at(1).text,
            "its memory goes to the static input of chunk 2, microbatch 0");
}

TEST(StaticInputReuse, ConcernsReadersOfTheInputItself) {
  EXPECT_TRUE(check_plan({.kind = PlanKind::Te, .aliases = Aliases{}}, kLate).findings().empty());
  EXPECT_TRUE(check_plan({.kind = PlanKind::Te, .aliases = Aliases{.grad_output = true}}, kLate)
                  .findings()
                  .empty());
}

TEST(StaticInputReuse, KnowsModulesThatReadIt) {
  const auto findings = [](const Module& module) {
    return check_in(
               {.modules = {.list = {module}, .layers = {{{0}}}}, .plan = {.kind = PlanKind::Te}},
               kLate)
        .of(Family::Buffers)
        .size();
  };
  const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::Linear, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::GroupedLinear, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::LayerNormLinear, .flags = sound}), 0u);
  EXPECT_EQ(
      findings({.name = "m", .kind = ModuleKind::Linear, .dtype = DataType::Fp8, .flags = sound}),
      0u);
  EXPECT_EQ(findings({.name = "m",
                      .kind = ModuleKind::GroupedLinear,
                      .dtype = DataType::Fp8,
                      .flags = sound,
                      .splits = Splits::Input}),
            1u)
      << "the sizes of the groups are an input too";
  ModuleFlags gathered = sound;
  gathered.gathered_input = true;
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::Linear, .flags = gathered}), 0u);
}

TEST(StaticInputReuse, TellsShapesApart) {
  const auto findings = [](std::int64_t tokens) {
    const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
    const ModuleTable modules{
        .list = {{.name = "a", .kind = ModuleKind::Linear, .shape = {.tokens = 16}, .flags = sound},
                 {.name = "b",
                  .kind = ModuleKind::Linear,
                  .shape = {.tokens = tokens},
                  .flags = sound}},
        .layers = {{{0}, {1}}}};
    return check_in({.modules = modules, .plan = {.kind = PlanKind::Te}},
                    "[1, -1, 2, -1.5, -2, -2.5]")
        .findings();
  };
  EXPECT_EQ(findings(16), Findings{"B01@0"});
  EXPECT_EQ(findings(32), Findings{});
}

TEST(StaticInputReuse, OfUndeclaredOperandsIsAWarning) {
  const Checked checked = check_plan({.kind = PlanKind::Te}, kLate);
  ASSERT_EQ(checked.findings(), Findings{"B01@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "if the module reads the input itself there, `-1.5` at index 3 reads the static input of "
      "chunk 1, microbatch 0, which `1` at index 2 has overwritten");
  EXPECT_TRUE(checked.accepted());
}

TEST(StaticInputReuse, OfAListWithoutAPlanIsAWarning) {
  const Checked unsure = check_plan({}, kLate);
  ASSERT_EQ(unsure.findings(), Findings{"B01@0"});
  EXPECT_EQ(unsure.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_EQ(
      unsure.result.diagnostics.kept().at(0).message,
      "under TransformerEngine's reuse of buffers, if the module reads the input itself there, "
      "`-1.5` at index 3 reads the static input of chunk 1, microbatch 0, which `1` at index 2 "
      "has overwritten");
  EXPECT_TRUE(unsure.accepted());
  const Checked known = check_plan({.aliases = kInput}, kLate);
  EXPECT_EQ(known.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_TRUE(known.accepted());
  EXPECT_TRUE(check_plan({}, "[1, -1, -1.5, 1, -1, -1.5]").findings().empty());
}

TEST(StaticInputReuse, OfAnOrderFileWithoutAPlanIsNotLookedFor) {
  EXPECT_TRUE(check_plan({}, "capo 1\nrank 0: F1 B1 F1 W1 B1 W1\n").findings().empty());
}

TEST(StaticInputReuse, UnderCaposPlanIsNone) {
  for (const Aliases aliases : {Aliases{}, kInput, Aliases{true, true}}) {
    const Checked checked = check_plan({.kind = PlanKind::Safe, .aliases = aliases}, kLate);
    EXPECT_TRUE(checked.findings().empty());
    EXPECT_TRUE(checked.accepted());
  }
}

TEST(StaticInputReuse, LooksAtEveryRankByItself) {
  const Checked checked = check_te_plan(
      "capo 1\n"
      "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
      "rank 1: F1.1 B1.1 F1.0 W1.1 B1.0 W1.0\n"
      "rank 2: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1\n");
  ASSERT_EQ(checked.findings(), (Findings{"B01@0", "B01@0"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "`W1.1` at index 3 of rank 1 reads the static input of chunk 1, microbatch 1, which "
            "`F1.0` at index 2 of rank 1 has overwritten");
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).witness.tasks.at(0).rank, 2);
}

TEST(StaticInputReuse, ShowsEveryLayerOfAChunk) {
  const Checked checked = check_te_plan("capo 1\nlayers 2\nrank 0: F1 B1 F1 W1 B1 W1\n");
  ASSERT_EQ(checked.findings(), (Findings{"B01@0", "B01@0"}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`W1` at index 3 reads the static input of chunk 1, layer 1, microbatch 0, which `F1` at "
      "index 2 has overwritten");
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(1).message,
      "`W1` at index 3 reads the static input of chunk 1, layer 0, microbatch 0, which `F1` at "
      "index 2 has overwritten");
}

TEST(StaticInputReuse, LeavesReplayOrdersToReplayOrder) {
  const Checked checked =
      check_te_plan("capo 1\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1\n");
  EXPECT_EQ(checked.findings(), Findings{"Y01@2"});
}

}  // namespace
}  // namespace capo
