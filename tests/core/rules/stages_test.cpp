// The rules of core/rules/stages.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "core/input/load.h"
#include "core/rules/check.h"
#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <string>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::labels;
using testing_support::says;
using testing_support::shows;
using testing_support::warns;

Checked check_chain(const std::string& list) {
  return check_in({.topology = Topology::Chain}, list, {.form = TextForm::TeList});
}

TEST(StageOrder, MembersOfACompositeHavePlacesInAnOrderFile) {
  const Checked checked = check_text("capo 1\nplacement chain\nrank 0: F1.0 F2.0 (B2.0 B1.0)\n");
  ASSERT_EQ(checked.findings(), Found{"D03@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.message,
            "`B1.0` at index 2 runs together with `B2.0`, whose gradient it reads");
  EXPECT_EQ(finding.labels.size(), 2u);
}

TEST(StageOrder, StandsHereAndNotThere) {
  const std::string custom = "capo 1\nplacement custom\nrank 0 stages 1,0\nrank 0: ";
  expect_findings({
      {"ShowsTheReaderAndWhatItReads", check_chain("[2, 1, -2, -1]"), "D03@0",
       shows("error path: 0:0 2 F(c2,m0), 0:1 1 F(c1,m0)")},
      {"ConcernsGradientsTheOtherWayRound", check_chain("[1, 2, -1, -2]"), "D03@2"},
      {"ConcernsTheInputHalfAndNotTheWeights", check_csv("0F0,1F0,0I0,1I0,1W0,0W0\n"), "D03@2"},
      {"", check_csv("0F0,1F0,1I0,0I0,0W0,1W0\n")},
      {"", check_chain("[1, 2, -1, -1.5, -2, -2.5]"), "D03@2"},
      {"ReportsEachMicrobatch", check_chain("[1, 1, 2, 2, -1, -1, -2, -2]"), "D03@4 D03@5"},
      {"GoesByTheMicrobatch", check_csv("0F0,0F1,1F1,1F0,1B0,0B0,1B1,0B1\n")},
      {"", check_csv("0F0,1F1,0F1,1F0,1B0,0B0,1B1,0B1\n"), "D03@1"},
      {"GoesByThePlacement",
       check_text("capo 1\nplacement v\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                  "rank 1: F2.0 F1.0 B2.0 B1.0\n"),
       "D03@0",
       says("`F2.0` at index 0 of rank 1 runs before `F1.0` at index 1, whose output it reads")},
      {"", check_text(custom + "F2.0 F1.0 B1.0 B2.0\n")},
      {"", check_text(custom + "F1.0 F2.0 B1.0 B2.0\n"), "D03@0"},
      {"AsksNothingOfChunksThatAreNotWired", check_te("[2, 1, -1, -2]")},
      {"MembersOfACompositeCannotReadEachOther",
       check_csv("0F0,(0F1;1F0)OVERLAP_F_B,(1F1;1B0)OVERLAP_F_B,0B0,1B1,0B1\n")},
      {"", check_csv("0F0,(1F0;1B0)OVERLAP_F_B,0B0\n"), "D01@1",
       because("forward and backward of one stage are backward-before-forward's")},
      {"", check_csv("(0F0;1F0)OVERLAP_F_B,1B0,0B0\n"), "D03@0", because("both are one cell"),
       labels("0+20")},
      {"ACompositeIsBeforeWhatOneOfItsMembersReads",
       check_csv("0F0,(1F0;0F1)OVERLAP_F_B,(0B0;1F1)OVERLAP_F_B,1B0,1B1,0B1\n"), "D03@2"},
      {"JudgesTheReplayOrderOnceAndTheCaptureOrderOnce",
       check_text("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n"
                  "rank 0 replay: F1.0 F2.0 B1.0 B2.0\n"),
       "D03@2",
       says("`B1.0` at index 2 of rank 0's replay order runs before `B2.0` at index 3, whose "
            "gradient it reads")},
      {"",
       check_text("capo 1\nplacement chain\nrank 0: F2.0 F1.0 B2.0 B1.0\n"
                  "rank 1: F1.0 B1.0\nrank 1 replay: F1.0 B1.0\n"),
       "D03@0", because("the replay of rank 1 says nothing new of rank 0")},
      {"LeavesWhatGoesByWayOfAnotherRankToDependencyCycle", check_csv("2F0,0F0,2B0,0B0\n1F0,1B0\n"),
       "D04@0"},
  });
}

TEST(StageOrder, WaitsForTheRulesOfOneOrder) {
  const Checked checked = check_chain("[2, 1, -2]");
  EXPECT_EQ(checked.findings().front().substr(0, 1), "S");
  EXPECT_EQ(checked.result.skipped.front(), Pass::Stages);
}

constexpr const char* kTwoRanks =
    "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n";

TEST(DependencyCycle, GoesAroundALoop) {
  const Checked checked = check_csv("2F0,0F0,2B0,0B0\n1F0,1B0\n");
  ASSERT_EQ(checked.findings(), Found{"D04@0"});
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

TEST(DependencyCycle, StandsHereAndNotThere) {
  const std::string orders =
      "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n";
  const std::string other = "replay: F1.1 F1.0 B1.0 B1.1\n";
  expect_findings({
      {"ShowsTheCircle", check_text(kTwoRanks), "D04@1",
       shows("error path: 0:1 B1.0 B(c1,m0), 1:2 B1.0 B(c1,m0), 1:0 F1.1 F(c1,m1), 0:2 F1.1 "
             "F(c1,m1)")},
      {"OpensWithOneOfItsSteps", check_text("capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
                                            "rank 1: F1.0 B1.0 F1.1 B1.1\n")},
      {"", check_text("capo 1\nplacement chain\nrank 0: F1.1 F1.0 B1.0 B1.1\n"
                      "rank 1: F1.1 F1.0 B1.0 B1.1\n")},
      {"NeedsThatStagesAreWired",
       check_text("capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n")},
      {"SaysWhichMicrobatchWhereTheyAreCounted",
       check_text("capo 1\nplacement chain\nrank 0: F1 B1 F1 B1\nrank 1: F1 F1 B1 B1\n"), "D04@1"},
      {"ACompositeNeedsAllThatItsMembersNeed",
       check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n"), "D04@1"},
      {"", check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n")},
      {"JudgesReplayOrdersTogether", check_text(orders + "rank 1 " + other), "D04@1"},
      {"", check_text(orders + "rank 0 " + other + "rank 1 " + other), "E01@0 Y01@0 Y01@0",
       warns()},
      {"OfCaptureOrdersIsReportedOnce",
       check_text("capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
                  "rank 1: F1.1 F1.0 B1.0 B1.1\nrank 2: F1.0 F1.1 B1.0 B1.1\n"
                  "rank 2 replay: F1.1 F1.0 B1.0 B1.1\n"),
       "D04@1"},
      {"LeavesARankThatContradictsItselfToStageOrder", check_csv("1F0,0F0,1B0,0B0\n2F0,2B0\n"),
       "D03@0"},
  });
}

TEST(DependencyCycle, SkipsTheTransfers) {
  EXPECT_EQ(check_text(kTwoRanks).result.skipped, std::vector<Pass>{Pass::Transfers});
  EXPECT_EQ(check_text(kTwoRanks).result.finishes, std::nullopt);
}

}  // namespace
}  // namespace capo
