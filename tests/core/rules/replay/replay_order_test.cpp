#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kOverlapped =
    "capo 1\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 F1 B1 W1 B1 W1\n";
constexpr const char* kSequential =
    "capo 1\nrank 0: F1 F1 B1 W1 B1 W1\nrank 0 replay: F1 B1 W1 F1 B1 W1\n";

Checked check_plan(const PlanOptions& plan, const std::string& text) {
  return check_in({.plan = plan}, text);
}

TEST(ReplayOrder, ShowsWhereTheOrdersPartAndWhatItBreaks) {
  const Checked checked = check_plan({.kind = PlanKind::Te, .aliases = Aliases{}}, kOverlapped);
  ASSERT_EQ(checked.findings(), Findings{"Y01@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "the replay leaves the order of capture at index 1: `F1` comes where `B1` was captured");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{51, 2}, "replayed here"}, {{18, 2}, "captured here"}}));
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{
          {.text = "then `B1` at index 2 of rank 0's replay order reads the static input of "
                   "chunk 1, microbatch 0, which `F1` at index 1 of rank 0's replay order has "
                   "overwritten; 5 such reads in all",
           .span = Span{54, 2}}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "replay in the order of capture, or capture in the order of replay"}));
  EXPECT_EQ(finding.family, Family::Replay);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{
                {0, 1, "F1", "F(c1,m1)"}, {0, 1, "F1", "F(c1,m1)"}, {0, 2, "B1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(ReplayOrder, ThatDoesNoHarmIsAWarning) {
  const Checked checked =
      check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}}, kSequential);
  ASSERT_EQ(checked.findings(), Findings{"Y01@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.severity, Severity::Warning);
  EXPECT_EQ(
      finding.message,
      "the replay leaves the order of capture at index 1: `B1` comes where `F1` was captured; "
      "it does no harm");
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{{.text = "under plan te every buffer is still read before its memory "
                                  "is taken over"}}));
  EXPECT_TRUE(finding.help.text.empty());
  EXPECT_TRUE(checked.accepted());
}

TEST(ReplayOrder, IsNoneWhereTheOrdersAgree) {
  const PlanOptions plan{.kind = PlanKind::Te, .aliases = Aliases{true, true}};
  EXPECT_TRUE(check_plan(plan, "capo 1\nrank 0: F1 F1 B1 W1 B1 W1\n").findings().empty());
  EXPECT_TRUE(
      check_plan(plan, "capo 1\nrank 0: F1 F1 B1 W1 B1 W1\nrank 0 replay: F1 F1 B1 W1 B1 W1\n")
          .findings()
          .empty());
}

TEST(ReplayOrder, PutsAReadThatIsWrongForCertainFirst) {
  // The output's block is up to the allocator, the static input is not.
  const Checked checked =
      check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}}, kOverlapped);
  ASSERT_EQ(checked.findings(), Findings{"Y01@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).notes.at(0).text,
            "then `W1` at index 3 of rank 0's replay order reads the static input of chunk 1, "
            "microbatch 0, which `F1` at index 1 of rank 0's replay order has overwritten; 2 such "
            "reads in all");
}

TEST(ReplayOrder, WithoutAPlanIsAWarning) {
  const Checked checked = check_plan({.aliases = Aliases{true, true}}, kOverlapped);
  ASSERT_EQ(checked.findings(), Findings{"Y01@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).notes.back().text,
            "no plan is declared; this is under TransformerEngine's reuse of buffers");
  EXPECT_TRUE(checked.accepted());
}

TEST(ReplayOrder, OfUndeclaredOperandsAloneIsAWarning) {
  const std::string order = "capo 1\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1\n";
  const Checked unsure = check_plan({.kind = PlanKind::Te}, order);
  ASSERT_EQ(unsure.findings(), Findings{"Y01@2"});
  EXPECT_EQ(unsure.result.diagnostics.kept().at(0).severity, Severity::Warning);
  EXPECT_TRUE(unsure.accepted());
  EXPECT_FALSE(
      check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}}, order).accepted());
}

TEST(ReplayOrder, IsAMatterOfCaposPlanToo) {
  const Checked checked = check_plan({.kind = PlanKind::Safe, .aliases = Aliases{}}, kOverlapped);
  ASSERT_EQ(checked.findings(), Findings{"Y01@1"});
  EXPECT_FALSE(checked.accepted());
  EXPECT_TRUE(check_plan({.kind = PlanKind::Safe, .aliases = Aliases{}}, kSequential).accepted());
}

TEST(ReplayOrder, LeavesHazardsOfTheCaptureToTheRulesOfBuffers) {
  const Checked checked = check_plan(
      {.kind = PlanKind::Te, .aliases = Aliases{.input = true}},
      "capo 1\nrank 0: F1 B1 F1 W1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1 F1 B1 W1\n");
  EXPECT_EQ(checked.findings(), Findings{"B01@0"});
}

TEST(ReplayOrder, IsOneFindingForEachRankThatLeaves) {
  const Checked checked = check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}},
                                     "capo 1\n"
                                     "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
                                     "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
                                     "rank 1 replay: F1.0 B1.0 F1.1 B1.1 W1.0 W1.1\n"
                                     "rank 2: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n"
                                     "rank 2 replay: F1.1 F1.0 B1.0 W1.0 B1.1 W1.1\n");
  ASSERT_EQ(checked.findings(), (Findings{"Y01@2", "Y01@0"}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "the replay of rank 1 leaves the order of capture at index 2: `F1.1` comes where `W1.0` "
      "was captured");
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).severity, Severity::Warning);
}

TEST(ReplayOrder, LooksAtEveryLayerOfAChunk) {
  const Checked checked =
      check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}},
                 "capo 1\nlayers 2\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1\n");
  ASSERT_EQ(checked.findings(), Findings{"Y01@2"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).notes.at(0).text,
      "then `W1` at index 3 of rank 0's replay order reads the static input of chunk 1, layer "
      "1, microbatch 0, which `F1` at index 2 of rank 0's replay order has overwritten; 5 such "
      "reads in all");
}

}  // namespace
}  // namespace capo
