#include "core/input/load.h"
#include "core/rules/check.h"
#include "tests/support/check_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kTwoRanks =
    "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n";

TEST(DependencyCycle, ShowsTheCircle) {
  const Checked checked = check_text(kTwoRanks);
  ASSERT_EQ(checked.findings(), Findings{"D04@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "ranks 0 and 1 wait for each other: their orders cannot be executed together");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{36, 4}, "needs `B1.0` of rank 1"},
                                                {{69, 4}, "comes after `F1.1`"},
                                                {{59, 4}, "needs `F1.1` of rank 0"},
                                                {{41, 4}, "comes after `B1.0`"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "move one of these in its rank's order, so that the circle opens"}));
  EXPECT_EQ(finding.family, Family::Dependencies);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Path);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{0, 1, "B1.0", "B(c1,m0)"},
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
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  ASSERT_EQ(finding.labels.size(), 3u);
  EXPECT_EQ(finding.labels.at(0).text, "needs `1F0` of rank 1");
  EXPECT_EQ(finding.labels.at(1).text, "needs `0F0` of rank 0");
  EXPECT_EQ(finding.labels.at(2).text, "comes after `2F0`");
}

// A loop of as many ranks in which the first runs its second stage before its first.
std::string message_of_a_circle(int ranks) {
  std::string csv = fmt::format("{0}F0,0F0,{0}B0,0B0\n", ranks);
  for (int stage = 1; stage < ranks; ++stage) csv += fmt::format("{0}F0,{0}B0\n", stage);
  return check_csv(csv).result.diagnostics.kept().at(0).message;
}

TEST(DependencyCycle, NamesUpToEightRanksOfIt) {
  constexpr const char* kWait = " wait for each other: their orders cannot be executed together";
  EXPECT_EQ(message_of_a_circle(3), std::string("ranks 0, 1 and 2") + kWait);
  EXPECT_EQ(message_of_a_circle(8), std::string("ranks 0, 1, 2, 3, 4, 5, 6 and 7") + kWait);
  EXPECT_EQ(message_of_a_circle(10),
            std::string("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more") + kWait);
}

TEST(DependencyCycle, ReportsTheShortestOne) {
  // Backwards of microbatch 0 by way of all three ranks, and by way of the first two.
  const Checked checked = check_csv(
      "0F0,0B0,0F1,0B1\n"
      "1F0,1F1,1B0,1B1\n"
      "2F1,2F0,2B0,2B1\n");
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "ranks 0 and 1 wait for each other: their orders cannot be executed together");
}

TEST(DependencyCycle, SaysWhichMicrobatchWhereTheyAreCounted) {
  const Checked checked =
      check_text("capo 1\nplacement chain\nrank 0: F1 B1 F1 B1\nrank 1: F1 F1 B1 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"D04@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).labels.at(0).text,
            "needs `B1` (microbatch 0) of rank 1");
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).labels.at(1).text,
            "comes after `F1` (microbatch 1)");
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
  const Checked checked = check_text(orders + "rank 1 " + other);
  ASSERT_EQ(checked.findings(), Findings{"D04@1"});
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "ranks 0 and 1 wait for each other: their orders cannot be replayed together");
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
