#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;
using Tasks = std::vector<TaskReference>;

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
  EXPECT_EQ(found[0].message,
            "`-1.5` at index 5 overwrites what `-1.5` wrote to main_grad: module `attn` has "
            "overwrite_main_grad, and the step has 2 microbatches");
  EXPECT_EQ(found[0].labels, (std::vector<Label>{{{11, 4}, "this gradient is lost"},
                                                 {{21, 4}, "module `attn` overwrites here"}}));
  EXPECT_EQ(found[0].help,
            (Help{.text = "let the weight gradient add, and clear main_grad before the step"}));
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
  EXPECT_EQ(found[0].message,
            "`W1.0` at index 5 overwrites what `W1.1` wrote to main_grad: module `attn` has "
            "is_first_microbatch, and this is the microbatch whose forward was first");
  EXPECT_EQ(found[0].help,
            (Help{.text = "run the weight gradient of the first forward before the others, or "
                          "clear main_grad before the step and leave is_first_microbatch out"}));
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

}  // namespace
}  // namespace capo
