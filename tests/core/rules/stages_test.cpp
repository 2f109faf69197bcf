// The rules of core/rules/stages.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "core/input/load.h"
#include "core/rules/check.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <string>

namespace capo {
namespace {

using Findings = std::vector<std::string>;
using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;

Checked check_chain(const std::string& list) {
  return check_in({.topology = Topology::Chain}, list, {.form = TextForm::TeList});
}

TEST(StageOrder, ShowsTheReaderAndWhatItReads) {
  const Checked checked = check_chain("[2, 1, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"D03@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Path);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<WitnessEntry>{{0, 0, "2", "F(c2,m0)"}, {0, 1, "1", "F(c1,m0)"}}));
}

TEST(StageOrder, ConcernsGradientsTheOtherWayRound) {
  EXPECT_EQ(check_chain("[1, 2, -1, -2]").findings(), Findings{"D03@2"});
}

TEST(StageOrder, ConcernsTheInputHalfAndNotTheWeights) {
  EXPECT_EQ(check_csv("0F0,1F0,0I0,1I0,1W0,0W0\n").findings(), Findings{"D03@2"});
  EXPECT_TRUE(check_csv("0F0,1F0,1I0,0I0,0W0,1W0\n").accepted());
  EXPECT_EQ(check_chain("[1, 2, -1, -1.5, -2, -2.5]").findings(), Findings{"D03@2"});
}

TEST(StageOrder, ReportsEachMicrobatch) {
  EXPECT_EQ(check_chain("[1, 1, 2, 2, -1, -1, -2, -2]").findings(), (Findings{"D03@4", "D03@5"}));
}

TEST(StageOrder, GoesByTheMicrobatch) {
  EXPECT_TRUE(check_csv("0F0,0F1,1F1,1F0,1B0,0B0,1B1,0B1\n").accepted());
  EXPECT_EQ(check_csv("0F0,1F1,0F1,1F0,1B0,0B0,1B1,0B1\n").findings(), Findings{"D03@1"});
}

TEST(StageOrder, GoesByThePlacement) {
  EXPECT_EQ(check_text("capo 1\nplacement v\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                       "rank 1: F2.0 F1.0 B2.0 B1.0\n")
                .first()
                .message,
            "`F2.0` at index 0 of rank 1 runs before `F1.0` at index 1, whose output it reads");
  const std::string custom = "capo 1\nplacement custom\nrank 0 stages 1,0\nrank 0: ";
  EXPECT_TRUE(check_text(custom + "F2.0 F1.0 B1.0 B2.0\n").accepted());
  EXPECT_EQ(check_text(custom + "F1.0 F2.0 B1.0 B2.0\n").findings(), Findings{"D03@0"});
}

TEST(StageOrder, AsksNothingOfChunksThatAreNotWired) {
  EXPECT_TRUE(check_te("[2, 1, -1, -2]").accepted());
}

TEST(StageOrder, MembersOfACompositeCannotReadEachOther) {
  EXPECT_TRUE(check_csv("0F0,(0F1;1F0)OVERLAP_F_B,(1F1;1B0)OVERLAP_F_B,0B0,1B1,0B1\n").accepted());
  EXPECT_EQ(check_csv("0F0,(1F0;1B0)OVERLAP_F_B,0B0\n").findings(), Findings{"D01@1"})
      << "forward and backward of one stage are backward-before-forward's";
  const Checked together = check_csv("(0F0;1F0)OVERLAP_F_B,1B0,0B0\n");
  ASSERT_EQ(together.findings(), Findings{"D03@0"});
  const Diagnostic& finding = together.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{0, 20}, ""}})) << "both are one cell";
}

TEST(StageOrder, MembersOfACompositeHavePlacesInAnOrderFile) {
  const Checked checked = check_text("capo 1\nplacement chain\nrank 0: F1.0 F2.0 (B2.0 B1.0)\n");
  ASSERT_EQ(checked.findings(), Findings{"D03@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.message,
            "`B1.0` at index 2 runs together with `B2.0`, whose gradient it reads");
  EXPECT_EQ(finding.labels.size(), 2u);
}

TEST(StageOrder, ACompositeIsBeforeWhatOneOfItsMembersReads) {
  EXPECT_EQ(check_csv("0F0,(1F0;0F1)OVERLAP_F_B,(0B0;1F1)OVERLAP_F_B,1B0,1B1,0B1\n").findings(),
            Findings{"D03@2"});
}

TEST(StageOrder, JudgesTheReplayOrderOnceAndTheCaptureOrderOnce) {
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                       "rank 0 replay: F1.0 F2.0 B1.0 B2.0\n")
                .first()
                .message,
            "`B1.0` at index 2 of rank 0's replay order runs before `B2.0` at index 3, whose "
            "gradient it reads");
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F2.0 F1.0 B2.0 B1.0\n"
                       "rank 1: F1.0 B1.0\nrank 1 replay: F1.0 B1.0\n")
                .findings(),
            Findings{"D03@0"})
      << "the replay of rank 1 says nothing new of rank 0";
}

TEST(StageOrder, LeavesWhatGoesByWayOfAnotherRankToDependencyCycle) {
  EXPECT_EQ(check_csv("2F0,0F0,2B0,0B0\n1F0,1B0\n").findings(), Findings{"D04@0"});
}

TEST(StageOrder, WaitsForTheRulesOfOneOrder) {
  const Checked checked = check_chain("[2, 1, -2]");
  EXPECT_EQ(checked.findings().front().substr(0, 1), "S");
  EXPECT_EQ(checked.result.skipped.front(), Pass::Stages);
}

constexpr const char* kTwoRanks =
    "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n";

TEST(DependencyCycle, ShowsTheCircle) {
  const Checked checked = check_text(kTwoRanks);
  ASSERT_EQ(checked.findings(), Findings{"D04@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.witness.kind, WitnessKind::Path);
  EXPECT_EQ(finding.witness.tasks, (std::vector<WitnessEntry>{{0, 1, "B1.0", "B(c1,m0)"},
                                                              {1, 2, "B1.0", "B(c1,m0)"},
                                                              {1, 0, "F1.1", "F(c1,m1)"},
                                                              {0, 2, "F1.1", "F(c1,m1)"}}));
}

TEST(DependencyCycle, OpensWithOneOfItsSteps) {
  EXPECT_TRUE(check_text("capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
                         "rank 1: F1.0 B1.0 F1.1 B1.1\n")
                  .accepted());
  EXPECT_TRUE(check_text("capo 1\nplacement chain\nrank 0: F1.1 F1.0 B1.0 B1.1\n"
                         "rank 1: F1.1 F1.0 B1.0 B1.1\n")
                  .accepted());
}

TEST(DependencyCycle, NeedsThatStagesAreWired) {
  EXPECT_TRUE(
      check_text("capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n").accepted());
}

TEST(DependencyCycle, GoesAroundALoop) {
  const Checked checked = check_csv("2F0,0F0,2B0,0B0\n1F0,1B0\n");
  ASSERT_EQ(checked.findings(), Findings{"D04@0"});
  ASSERT_EQ(checked.first().labels.size(), 3u);
}

// A loop of as many ranks in which the first runs its second stage before its first.
std::string message_of_a_circle(int ranks) {
  std::string csv = fmt::format("{0}F0,0F0,{0}B0,0B0\n", ranks);
  for (int stage = 1; stage < ranks; ++stage) csv += fmt::format("{0}F0,{0}B0\n", stage);
  return check_csv(csv).first().message;
}

TEST(DependencyCycle, NamesUpToEightRanksOfIt) {
  constexpr const char* kWait = " wait for each other: their orders cannot be executed together";
  EXPECT_EQ(message_of_a_circle(3), std::string("ranks 0, 1 and 2") + kWait);
  EXPECT_EQ(message_of_a_circle(8), std::string("ranks 0, 1, 2, 3, 4, 5, 6 and 7") + kWait);
  EXPECT_EQ(message_of_a_circle(10),
            std::string("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more") + kWait);
}

TEST(DependencyCycle, SaysWhichMicrobatchWhereTheyAreCounted) {
  const Checked checked =
      check_text("capo 1\nplacement chain\nrank 0: F1 B1 F1 B1\nrank 1: F1 F1 B1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"D04@1"});
}

TEST(DependencyCycle, ACompositeNeedsAllThatItsMembersNeed) {
  EXPECT_EQ(check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n").findings(),
            Findings{"D04@1"});
  EXPECT_TRUE(check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n").accepted());
}

TEST(DependencyCycle, JudgesReplayOrdersTogether) {
  const std::string orders =
      "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n";
  const std::string other = "replay: F1.1 F1.0 B1.0 B1.1\n";
  EXPECT_EQ(check_text(orders + "rank 1 " + other).findings(), Findings{"D04@1"});
  EXPECT_TRUE(check_text(orders + "rank 0 " + other + "rank 1 " + other).accepted());
}

TEST(DependencyCycle, OfCaptureOrdersIsReportedOnce) {
  EXPECT_EQ(check_text("capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
                       "rank 1: F1.1 F1.0 B1.0 B1.1\nrank 2: F1.0 F1.1 B1.0 B1.1\n"
                       "rank 2 replay: F1.1 F1.0 B1.0 B1.1\n")
                .findings(),
            Findings{"D04@1"});
}

TEST(DependencyCycle, OfCaptureAndReplayIsCountedBeyondTheLimit) {
  Input input = load(Source{.name = "x",
                            .text = "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
                                    "rank 1: F1.1 F1.0 B1.0 B1.1\n"
                                    "rank 0 replay: F1.1 B1.1 F1.0 B1.0\n"
                                    "rank 1 replay: F1.0 F1.1 B1.1 B1.0\n"},
                     {})
                    .value();
  const CheckResult result = check(input, {.findings_per_rule = 1});
  EXPECT_EQ(result.diagnostics.kept().size(), 1U);
  EXPECT_EQ(result.diagnostics.errors(), 2U);
}

TEST(DependencyCycle, LeavesARankThatContradictsItselfToStageOrder) {
  EXPECT_EQ(check_csv("1F0,0F0,1B0,0B0\n2F0,2B0\n").findings(), Findings{"D03@0"});
}

TEST(DependencyCycle, SkipsTheTransfers) {
  EXPECT_EQ(check_text(kTwoRanks).result.skipped, std::vector<Pass>{Pass::Transfers});
  EXPECT_EQ(check_text(kTwoRanks).result.finishes, std::nullopt);
}

}  // namespace
}  // namespace capo
