// The rules of core/rules/replay.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "core/input/load.h"
#include "core/rules/verdicts.h"
#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::Found;
using testing_support::shows;
using testing_support::warns;

constexpr const char* kOverlapped =
    "capo 1\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 F1 B1 W1 B1 W1\n";
constexpr const char* kSequential =
    "capo 1\nrank 0: F1 F1 B1 W1 B1 W1\nrank 0 replay: F1 B1 W1 F1 B1 W1\n";

Checked check_plan(const PlanOptions& plan, const std::string& text) {
  return check_in({.plan = plan}, text);
}

TEST(ReplayOrder, ThatDoesNoHarmIsAWarning) {
  const Checked checked =
      check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}}, kSequential);
  ASSERT_EQ(checked.findings(), Found{"Y01@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.severity, Severity::Warning);
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
  ASSERT_EQ(checked.findings(), Found{"Y01@1"});
}

TEST(ReplayOrder, StandsHereAndNotThere) {
  const std::string order = "capo 1\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1\n";
  expect_findings({
      {"ShowsWhereTheOrdersPartAndWhatItBreaks",
       check_plan({.kind = PlanKind::Te, .aliases = Aliases{}}, kOverlapped), "Y01@1",
       shows("error replay: 0:1 F1 F(c1,m1), 0:1 F1 F(c1,m1), 0:2 B1 B(c1,m0)")},
      {"WithoutAPlanIsAWarning", check_plan({.aliases = Aliases{true, true}}, kOverlapped), "Y01@1",
       warns()},
      {"OfUndeclaredOperandsAloneIsAWarning", check_plan({.kind = PlanKind::Te}, order), "Y01@2",
       warns()},
      {"", check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}}, order), "Y01@2",
       fails()},
      {"IsAMatterOfCaposPlanToo",
       check_plan({.kind = PlanKind::Safe, .aliases = Aliases{}}, kOverlapped), "Y01@1", fails()},
      {"", check_plan({.kind = PlanKind::Safe, .aliases = Aliases{}}, kSequential), "Y01@1",
       warns()},
      {"LeavesHazardsOfTheCaptureToTheRulesOfBuffers",
       check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}},
                  "capo 1\nrank 0: F1 B1 F1 W1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1 F1 "
                  "B1 W1\n"),
       "B01@0"},
  });
}

TEST(ReplayOrder, IsOneFindingForEachRankThatLeaves) {
  const Checked checked = check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}},
                                     "capo 1\n"
                                     "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
                                     "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
                                     "rank 1 replay: F1.0 B1.0 F1.1 B1.1 W1.0 W1.1\n"
                                     "rank 2: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n"
                                     "rank 2 replay: F1.1 F1.0 B1.0 W1.0 B1.1 W1.1\n");
  ASSERT_EQ(checked.findings(), (Found{"Y01@2", "Y01@0"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).severity, Severity::Warning);
}

TEST(ReplayOrder, LooksAtEveryLayerOfAChunk) {
  const Checked checked =
      check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}},
                 "capo 1\nlayers 2\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1\n");
  ASSERT_EQ(checked.findings(), Found{"Y01@2"});
  EXPECT_EQ(
      checked.first().notes.at(0).text,
      "then `W1` at index 3 of rank 0's replay order reads the static input of chunk 1, layer "
      "1, microbatch 0, which `F1` at index 2 of rank 0's replay order has overwritten; 5 such "
      "reads in all");
}

constexpr const char* kParted =
    "capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 0 replay: F1.0 B1.0 F1.1 B1.1\n";

TEST(StashOrder, NamesTheFirstGraphWithAnotherNeighbour) {
  const Checked checked = check_plan({.kind = PlanKind::Safe, .paged_stash = true}, kParted);
  EXPECT_EQ(checked.findings(), (Found{"Y06@0"}));
  EXPECT_FALSE(checked.accepted());
}

TEST(StashOrder, IsNoneWithoutAStashOrWhereAllNeighboursAreAlike) {
  EXPECT_TRUE(check_plan({.kind = PlanKind::Safe}, kParted).accepted());
  EXPECT_TRUE(check_plan({.kind = PlanKind::Safe, .paged_stash = true},
                         "capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1\n"
                         "rank 0 replay: F1.0 F1.1 B1.0 B1.1\n")
                  .findings()
                  .empty());
}

TEST(StashOrder, NamesTheGraphThatWasCapturedLastWhereAnotherFollows) {
  const Checked checked =
      check_plan({.kind = PlanKind::Safe, .paged_stash = true},
                 "capo 1\nrank 0: F1.0 B1.0 F2.0 B2.0\nrank 0 replay: F2.0 B2.0 F1.0 B1.0\n");
  EXPECT_EQ(checked.findings(), (Found{"Y06@1"}));
}

TEST(StashOrder, NamesAGraphThatIsReplayedLastAndWasNot) {
  const Checked checked =
      check_plan({.kind = PlanKind::Safe, .paged_stash = true},
                 "capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 0 replay: F1.0 F1.1 B1.1 B1.0\n");
  EXPECT_EQ(checked.findings(), (Found{"Y06@1", "Y01@2"}));
}

// The fast interface leaves out what a plan that nobody declared is asked for.
TEST(StashOrder, IsJudgedWithoutAPlanAndWhereAllPlansAreTooLarge) {
  for (const std::uint64_t most : {std::uint64_t{1}, PlanOptions{}.max_buffers}) {
    const CheckOptions options{.plan = {.max_buffers = most, .paged_stash = true}};
    EXPECT_EQ(check_in({.plan = options.plan}, kParted).findings().front(), "Y06@0");
    Verdicts verdicts({.options = options});
    EXPECT_EQ(verdicts.of(*load(Source{.name = "x", .text = kParted}, {})).rule, "Y06");
  }
}

}  // namespace
}  // namespace capo
