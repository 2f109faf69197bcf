// The rules of core/rules/gradients.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/data.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using Tasks = std::vector<WitnessEntry>;
using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_module;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::Found;
using testing_support::says;

const Module kOverwrites{
    .name = "attn",
    .kind = ModuleKind::Linear,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .overwrite_main_grad = true}};
const Module kFirst{
    .name = "attn",
    .kind = ModuleKind::Linear,
    .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .is_first_microbatch = true}};
const std::string kTwo = "[1, 1, -1, -1.5, -1, -1.5]";
const std::string kSecondFirst = "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.1 W1.1 B1.0 W1.0\n";

std::vector<Diagnostic> findings(const Module& module, const std::string& text,
                                 std::optional<PlanKind> plan) {
  return check_module(module, text, plan).of(Family::Gradients);
}

TEST(FirstWriter, ShowsTheTwoOfWhichTheSecondReplacesTheFirst) {
  const auto found = findings(kOverwrites, kTwo, PlanKind::Te);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "G12");
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].witness.kind, WitnessKind::Replay);
  EXPECT_EQ(found[0].witness.tasks,
            (Tasks{{0, 3, "-1.5", "W(c1,m0)"}, {0, 5, "-1.5", "W(c1,m1)"}}));
}

TEST(FirstWriter, IsAnErrorWithoutAPlanAndNoneUnderCapos) {
  const auto found = findings(kOverwrites, kTwo, std::nullopt);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_TRUE(findings(kOverwrites, kTwo, PlanKind::Safe).empty());
  EXPECT_TRUE(findings(kFirst, kSecondFirst, PlanKind::Safe).empty());
}

TEST(FirstWriter, AcceptsOneMicrobatch) {
  EXPECT_TRUE(findings(kOverwrites, "[1, -1, -1.5]", PlanKind::Te).empty());
}

TEST(FirstWriter, ConcernsWhatIsWrittenToMainGrad) {
  Module module = kOverwrites;
  module.flags.fuse_wgrad_accumulation = false;
  for (const Diagnostic& finding : findings(module, kTwo, PlanKind::Te))
    EXPECT_EQ(finding.rule, "G01");
  module = kOverwrites;
  module.flags.delay_wgrad = false;
  const auto found = findings(module, "[1, 1, -1, -1]", PlanKind::Te);
  ASSERT_EQ(found.size(), 1u) << "B writes it";
  EXPECT_EQ(found[0].witness.tasks, (Tasks{{0, 2, "-1", "B(c1,m0)"}, {0, 3, "-1", "B(c1,m1)"}}));
  module.flags.frozen_weight = true;
  EXPECT_TRUE(findings(module, "[1, 1, -1, -1]", PlanKind::Te).empty());
}

TEST(FirstWriter, IsStillAMatterOfOverwritingWhereTheFirstIsKnown) {
  Module module = kOverwrites;
  module.flags.is_first_microbatch = true;
  EXPECT_EQ(findings(module, kTwo, PlanKind::Te).size(), 1u);
}

TEST(FirstWriter, OfACallIsTheMicrobatchWhoseForwardWasFirst) {
  const auto found = findings(kFirst, kSecondFirst, std::nullopt);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::Error);
  EXPECT_EQ(found[0].witness.tasks,
            (Tasks{{0, 3, "W1.1", "W(c1,m1)"}, {0, 5, "W1.0", "W(c1,m0)"}}));
  EXPECT_TRUE(findings(kFirst, kTwo, std::nullopt).empty());
  EXPECT_TRUE(findings(kFirst, "capo 1\nmicrobatches 2\nrank 0: F1.1 F1.0 B1.1 W1.1 B1.0 W1.0\n",
                       std::nullopt)
                  .empty())
      << "microbatch 1 was the first forward";
}

TEST(FirstWriter, OfACallIsBakedOutOfACaptureAndUnknownToOperations) {
  EXPECT_TRUE(findings(kFirst, kSecondFirst, PlanKind::Te).empty());
  Module module = kFirst;
  module.kind = ModuleKind::GroupedLinearOp;
  for (const Diagnostic& finding : findings(module, kSecondFirst, std::nullopt))
    EXPECT_NE(finding.rule, "G12");
}

TEST(FirstWriter, IsOneFindingOfEachModule) {
  EXPECT_EQ(findings(kOverwrites, "capo 1\nrank 0: F1 F1 B1 W1 B1 W1\nrank 1: F1 F1 B1 W1 B1 W1\n",
                     PlanKind::Te)
                .size(),
            1u);
}

TEST(FirstWriter, OfThreeTheSecondIsTheOneThatOverwrites) {
  const auto found = findings(kOverwrites, "[1, 1, 1, -1, -1.5, -1, -1.5, -1, -1.5]", PlanKind::Te);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].witness.tasks.at(1).index, 6u);
}

TEST(FirstWriter, OverwritesByCallAreThoseOfModulesOfAnyKindThatAddLater) {
  Module module = kFirst;
  module.kind.reset();
  EXPECT_EQ(findings(module, kSecondFirst, std::nullopt).size(), 1u);
  module.flags.overwrite_main_grad = true;
  const auto always = findings(module, kSecondFirst, std::nullopt);
  ASSERT_EQ(always.size(), 1u);
  EXPECT_NE(always[0].message.find("overwrite_main_grad"), std::string::npos);
}

TEST(FirstWriter, PassesByWhatWritesNoGradient) {
  EXPECT_EQ(
      findings(kOverwrites,
               "capo 1\nmicrobatches 2\nrank 0: unshard1 F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1\n",
               PlanKind::Te)
          .size(),
      1u);
}

TEST(ReduceEarly, ShowsTheReductionAndTheGradientBehindIt) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 W1.0\n");
  ASSERT_EQ(checked.findings(), Found{"G13@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{0, 2, "reduce1", "reduce(c1)"},
                                                              {0, 3, "W1.0", "W(c1,m0)"}}));
}

TEST(ReduceEarly, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 W1.0 reduce1\n"
                       "rank 0 replay: F1.0 B1.0 reduce1 W1.0\n")
                .of(Family::Gradients)
                .size(),
            1u);
}

TEST(ReduceEarly, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheStageOfATable",
       check_csv("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n1F0,1F1,1B0,1B1,1REDUCE_GRAD\n"), "G13@3",
       says("`0REDUCE_GRAD` at index 3 of rank 0 reduces the gradients of stage 0 before they are "
            "complete: `0B1` adds to them at index 4")},
      {"LetsAWholeBackwardAndTheLastWeightGradientComplete",
       check_text("capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1 reduce1\n")},
      {"", check_text("capo 1\nrank 0: F1.0 B1.0 W1.0 reduce1\n")},
      {"", check_csv("0F0,0F1,0I0,0B1,0W0,0REDUCE_GRAD\n")},
      {"", check_csv("0F0,0F1,0I0,0W0,0REDUCE_GRAD,0B1\n"), "G13@4"},
      {"LooksAtTheReducedChunkAlone",
       check_text("capo 1\nrank 0: F1.0 F2.0 B2.0 reduce2 B1.0 reduce1\n")},
      {"IsAFindingOfEachChunkOfAnOrder",
       check_text("capo 1\nrank 0: F1.0 F1.1 F2.0 F2.1 B2.0 reduce2 B1.0 reduce1 B1.1 reduce1 "
                  "B2.1 reduce2\n"),
       "G13@5 G13@7"},
      {"StandsAsideWhereTheOrderIsNotSound",
       check_text("capo 1\nrank 0: F1.0 F1.1 B1.0 reduce1 W1.0 B1.1\n"), "S21@5"},
  });
}

TEST(ReduceMissing, ShowsTheLastGradientAndAChunkThatIsReduced) {
  const std::string text = "capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0\n";
  const Checked checked = check_text(text);
  ASSERT_EQ(checked.findings(), Found{"G14@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.help,
            (Help{.text = "add `reduce1` after it", .edits = {{{50, 0}, " reduce1"}}}));
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{1, 1, "B1.0", "B(c1,m0)"}}));
  EXPECT_TRUE(check_text(text.substr(0, 50) + " reduce1\n").accepted()) << "its edit cures it";
}

TEST(ReduceMissing, StandsHereAndNotThere) {
  expect_findings({
      {"NamesTheStagesOfATable", check_csv("0F0,1F0,1B0,1REDUCE_GRAD,0B0\n"), "G14@4"},
      {"SaysNothingWhereNothingIsReduced",
       check_text("capo 1\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n")},
      {"", check_text("[1, 2, -2, -1]")},
      {"AcceptsOneForEveryChunk",
       check_text(
           "capo 1\nrank 0: F1.0 F2.0 B2.0 reduce2 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1\n")},
  });
}

TEST(ReduceMissing, LetsAChunkOfFrozenLayersGo) {
  const std::string text = "capo 1\nrank 0: F1.0 F2.0 B2.0 reduce2 B1.0\n";
  EXPECT_EQ(check_text(text).findings(), Found{"G14@4"});
  const auto findings = [&](ModuleFlags frozen) {
    const ModuleTable modules{.list = {{.name = "trained"}, {.name = "frozen", .flags = frozen}},
                              .layers = {{{1}, {0}}}};
    return check_in({.modules = modules}, text).findings();
  };
  EXPECT_EQ(findings({.frozen_weight = true}), Found{});
  EXPECT_EQ(findings({.frozen_weight = true, .bias = true}), Found{"G14@4"});
  EXPECT_EQ(findings({}), Found{"G14@4"});
}

TEST(ReduceMissing, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 0 replay: F1.0 B1.0\n")
                .of(Family::Gradients)
                .size(),
            1u);
}

TEST(ReduceTwice, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsBoth", check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 reduce1\n"), "G15@3", fails()},
      {"CountsEachBehindTheFirst",
       check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 reduce1 reduce1\n"), "G15@3 G15@4"},
      {"LeavesWhatIsReducedTooEarlyToReduceEarly",
       check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 F1.1 B1.1 reduce1 reduce1\n"), "G13@2"},
      {"LooksAtEachChunkOfEachRankByItself",
       check_csv("0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD\n")},
      {"", check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1\n")},
      {"", check_csv("0F0,1F0,1B0,0B0,0REDUCE_GRAD,1REDUCE_GRAD,0REDUCE_GRAD\n"), "G15@6"},
  });
}

TEST(ReduceTwice, JudgesTheReplayOrderToo) {
  EXPECT_EQ(
      check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 0 replay: F1.0 B1.0 reduce1 reduce1\n")
          .of(Family::Gradients)
          .size(),
      1U);
}

}  // namespace
}  // namespace capo
