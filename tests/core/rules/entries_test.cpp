// The rules of core/rules/entries.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::labels;

TEST(NotFinite, NamesTheEntryAndItsPlace) {
  const Checked checked = check_te("[1, nan, -1]");
  ASSERT_EQ(checked.findings(), Found{"S01@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 3}, ""}}));
  EXPECT_TRUE(finding.help.edits.empty()) << "nobody knows which chunk was meant";
}

TEST(NotFinite, KnowsEverySpellingThatPythonHas) {
  for (const std::string spelling : {"nan", "NaN", "-nan", "inf", "Inf", "+inf", "-inf", "Infinity",
                                     "-INFINITY", "1e999", "-1e999"}) {
    EXPECT_EQ(check_te("[1, " + spelling + ", -1]").findings(), Found{"S01@1"}) << spelling;
  }
}

TEST(NotFinite, NamesTheEntryOfAJsonListWithoutItsQuotes) {
  const Checked checked = check_text(R"({"order": [1, "NaN", -1]})");
  ASSERT_EQ(checked.findings(), Found{"S01@1"});
  EXPECT_EQ(checked.first().witness.tasks.at(0).text, "NaN");
}

TEST(NotFinite, StandsHereAndNotThere) {
  expect_findings({
      {"ReportsEachOfThem", check_te("[nan, 1, -inf, -1]"), "S01@0 S01@2"},
      {"AcceptsTheListWithoutIt", check_te("[1, -1]")},
      {"LeavesTheLargestFiniteNumberToFloatChunk", check_te("[1, 1.7976931348623157e308, -1]"),
       "S03@1"},
  });
}

TEST(NotFinite, LeavesWhatItHidesUnjudgedAndSaysSo) {
  const Checked checked = check_te("[1, nan]");  // nor has chunk 1 a backward
  EXPECT_EQ(checked.findings(), Found{"S01@1"});
  EXPECT_EQ(checked.result.skipped,
            (std::vector<Pass>{Pass::Counts, Pass::Order, Pass::Placement}));
}

TEST(NotAHalf, ProposesTheWeightGradientOfTheSameChunk) {
  const Checked checked = check_te("[1, -1, -1.25]");
  ASSERT_EQ(checked.findings(), Found{"S02@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 5}, ""}}));
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{8, 5}, "-1.5"}}));
}

TEST(NotAHalf, ItsEditCuresTheList) {
  const Checked checked = check_te("[1, -1, -1.25]");
  const Edit& edit = checked.first().help.edits.at(0);
  std::string text = checked.input.source.text;
  EXPECT_TRUE(
      check_te(text.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted());
}

TEST(NotAHalf, RoundsTheChunkTowardsZeroAsTheNotationDoes) {
  for (const auto& [written, meant] : {std::pair("-1.75", "-1.5"),
                                       {"-2.0001", "-2.5"},
                                       {"-2.9999", "-2.5"},
                                       {"-12.1", "-12.5"},
                                       {"-1.5000001", "-1.5"}}) {
    const Checked checked = check_te(std::string("[1, ") + written + ", -1]");
    EXPECT_EQ(checked.findings(), Found{"S02@1"}) << written;
    EXPECT_EQ(checked.first().help.edits.at(0).replacement, meant) << written;
  }
}

TEST(NotAHalf, AcceptsOneHalfHoweverItIsWritten) {
  for (const std::string half : {"-1.5", "-1.50", "-15e-1", "-1.4999999999999999999"}) {
    EXPECT_TRUE(check_te("[1, -1, " + half + "]").accepted()) << half;
  }
}

TEST(NotAHalf, StandsHereAndNotThere) {
  expect_findings({
      {"ReadsAJsonListAlike", check_text(R"({"order": [1, -1, -1.25]})"), "S02@2"},
      {"LeavesOtherOddEntriesToTheirRules", check_te("[1, -0.25, -1]"), "S04@1",
       because("there is no chunk 0")},
      {"", check_te("[1, 1.25, -1]"), "S05@1", because("a forward")},
      {"", check_te("[1, -1.0]"), "S03@1", because("no fraction at all")},
      {"", check_te("[1, -inf, -1]"), "S01@1"},
      {"LeavesWhatIsTooLargeToAnother", check_te("[1, -1, -1e12]"), "S03@2"},
      {"", check_te("[1, -1, -1000000000000.5]"), "S12@2"},
  });
}

TEST(FloatChunk, ProposesTheInteger) {
  const Checked checked = check_te("[1.0, -1]");
  ASSERT_EQ(checked.findings(), Found{"S03@0"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{1, 3}, ""}}));
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{1, 3}, "1"}}));
}

TEST(FloatChunk, ItsEditCuresTheList) {
  const Checked checked = check_te("[1, -1.0]");
  const Edit& edit = checked.first().help.edits.at(0);
  std::string text = checked.input.source.text;
  EXPECT_TRUE(
      check_te(text.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted());
}

TEST(FloatChunk, KnowsEveryWayToWriteAWholeFloat) {
  for (const std::string whole : {"1.", "1.0", "1e0", "10e-1", "+1.0", "-1.0", "-1e0", "1000.0"}) {
    EXPECT_EQ(check_te("[1, " + whole + ", -1]").findings(), Found{"S03@1"}) << whole;
  }
}

TEST(FloatChunk, ProposesNoIntegerThatNobodyCanRead) {
  EXPECT_TRUE(check_te("[1, 1e11, -1]").first().help.edits.empty());
  const Checked endless = check_te("[1, 1e30, -1]");
  EXPECT_EQ(endless.findings(), Found{"S03@1"});
  EXPECT_TRUE(endless.first().help.edits.empty());
}

TEST(FloatChunk, StandsHereAndNotThere) {
  expect_findings({
      {"TellsAFloatOfAJsonListFromAnInteger", check_text(R"({"order": [1, -1.0]})"), "S03@1"},
      {"", check_text(R"({"order": [1, -1]})")},
      {"AcceptsIntegersAndHalves", check_te("[1, +1, -1, -1, -1.5, -1.5]")},
      {"LeavesOtherOddEntriesToTheirRules", check_te("[1, 0.0, -1]"), "S04@1",
       because("0.0 is no chunk in any type")},
      {"", check_te("[1, -0.0, -1]"), "S04@1"},
      {"", check_te("[1, inf, -1]"), "S01@1"},
      {"", check_te("[1, 1.5, -1]"), "S05@1"},
  });
}

TEST(ChunkZero, SaysFromWhereChunksAreCounted) {
  const Checked checked = check_te("[1, 0]");
  ASSERT_EQ(checked.findings(), Found{"S04@1"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 1}, ""}}));
  EXPECT_TRUE(finding.help.edits.empty()) << "it may be either, of any chunk";
}

TEST(ChunkZero, TellsTheWeightGradientOfChunkZeroFromWhatNamesNothing) {
  const auto message = [](const std::string& entry) {
    const Checked checked = check_te("[1, -1, " + entry + "]");
    EXPECT_EQ(checked.findings(), Found{"S04@2"}) << entry;
    return checked.first().message;
  };
  for (const std::string half : {"-0.5", "-.5"}) {
    EXPECT_EQ(
        message(half),
        "`" + half + "` at index 2 is a weight gradient of chunk 0; chunks are counted from 1");
  }
  for (const std::string fraction : {"-0.25", "-0.999"}) {
    EXPECT_EQ(message(fraction), "`" + fraction + "` at index 2 names no chunk");
  }
}

TEST(ChunkZero, KnowsEveryZero) {
  for (const std::string zero :
       {"0", "-0", "+0", "00", "0.0", "-0.0", "0e5", "1e-999", "-1e-999"}) {
    EXPECT_EQ(check_te("[1, " + zero + ", -1]").findings(), Found{"S04@1"}) << zero;
  }
  EXPECT_EQ(check_text(R"({"order": [1, -0, -1]})").findings(), Found{"S04@1"});
}

TEST(ChunkZero, StandsHereAndNotThere) {
  expect_findings({
      {"AcceptsChunkOne", check_te("[1, -1, -1.5]")},
      {"LeavesOtherOddEntriesToTheirRules", check_te("[1, 0.5, -1]"), "S05@1",
       because("a positive fraction")},
      {"", check_te("[1, -1.0]"), "S03@1", because("chunk 1, as a float")},
      {"", check_te("[1, -1.25, -1]"), "S02@1", because("of chunk 1")},
      {"SparesTheListTheComplaintThatItHasNoForward", check_te("[0]"), "S04@0"},
  });
}

TEST(HalfForward, ProposesTheWeightGradientThatLacksItsSign) {
  const Checked checked = check_te("[1, -1, 1.5]");
  ASSERT_EQ(checked.findings(), Found{"S05@2"});
  const Diagnostic& finding = checked.first();
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{8, 3}, ""}}));
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{8, 3}, "-1.5"}}));
}

TEST(HalfForward, ItsEditCuresTheList) {
  const Checked checked = check_te("[1, -1, 1.5]");
  const Edit& edit = checked.first().help.edits.at(0);
  std::string text = checked.input.source.text;
  EXPECT_TRUE(
      check_te(text.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted());
}

TEST(HalfForward, GuessesNothingFromAnotherFraction) {
  for (const std::string fraction : {"0.5", "0.25", "1.25", "2.75", "1e-300"}) {
    const Checked checked = check_te("[1, " + fraction + ", -1]");
    EXPECT_EQ(checked.findings(), Found{"S05@1"}) << fraction;
    const Help& help = checked.first().help;
    EXPECT_EQ(help, (Help{.text = "a forward is a whole number"})) << fraction;
  }
}

TEST(HalfForward, StandsHereAndNotThere) {
  expect_findings({
      {"ReadsAJsonListAlike", check_text(R"({"order": [1, 1.5, -1]})"), "S05@1"},
      {"AcceptsTheNegativeHalf", check_te("[1, -1, -1.5]")},
      {"LeavesOtherOddEntriesToTheirRules", check_te("[1, 2.0, -1]"), "S03@1"},
      {"", check_te("[1, inf, -1]"), "S01@1"},
      {"", check_te("[1, 0.0, -1]"), "S04@1"},
      {"", check_te("[1, -1.25, -1]"), "S02@1"},
  });
}

TEST(EmptyOrder, HasNoPlaceToPointAt) {
  const Checked checked = check_te("[]");
  ASSERT_EQ(checked.findings(), Found{"S06@-"});
  const Diagnostic& finding = checked.first();
  EXPECT_TRUE(finding.labels.empty());
  EXPECT_TRUE(finding.help.edits.empty());
}

TEST(EmptyOrder, NamesTheRankThatIsEmpty) {
  const Checked checked = check_text("capo 1\nrank 0: F1 B1\nrank 1:\nrank 2: B1\n");
  ASSERT_EQ(checked.findings(), (Found{"S06@-", "S06@0"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).message, "the order of rank 2 has no forward");
}

TEST(EmptyOrder, WritesTheSmallestOrderDownWhereTheNotationIsKnown) {
  const std::string smallest = "the smallest order is one forward and its backward";
  EXPECT_EQ(check_text("capo 1\nrank 0:\n").first().help.text, smallest);
}

TEST(EmptyOrder, StandsHereAndNotThere) {
  expect_findings({
      {"PointsAtTheFirstEntryOfAnOrderWithoutForwards", check_te("[-1.5, -1]"), "S06@0",
       labels("1+4")},
      {"JudgesEveryForm", check_text(R"({"order": []})"), "S06@-"},
      {"", check_text(R"({"ranks": [{"order": ["B1"]}]})"), "S06@0"},
      {"", check_csv("0F0,0B0\n\n1F0,1B0\n"), "S06@-", because("a blank line is a rank")},
      {"", check_csv("0SEND_F0\n"), "S06@0", because("a transfer is no forward")},
      {"JudgesTheReplayOrderByItself", check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: B1\n"),
       "S06@0"},
      {"AcceptsOneForwardAndItsBackward", check_te("[1, -1]")},
      {"AllowsTheRankThatIsDeclaredToHoldNothing",
       check_text("capo 1\nrank 1 chunks 0\nrank 0: F1 B1\nrank 1:\n")},
      {"", check_csv("0F0,0B0\n\n", {.stage_to_rank = {{0}}})},
      {"", check_text("capo 1\nchunks 1\nrank 0:\n"), "S06@-", because("one chunk is some")},
      {"AllowsSuchARankIdleSlotsAndNothingElse",
       check_csv("0F0,0B0\n,\n", {.stage_to_rank = {{0}}})},
      {"", check_text("capo 1\nrank 1 chunks 0\nrank 0: F1 B1\nrank 1: B1\n"), "S06@0"},
      {"IsSilentWhereAForwardMayHideAmongUnreadableEntries", check_te("[nan]"), "S01@0"},
      {"", check_te("[1.0, -1]"), "S03@0"},
      {"LeavesAChunkWithoutForwardsToTheCounts", check_te("[1, -1, -2]"), "S14@2"},
      {"ConcernsAListOfNoChunksToo",
       check_te("[]", {.layers = {.form = Layers::Form::List, .values = {}}}), "S06@-"},
      {"SparesARankThatIsDeclaredToHaveNoChunks",
       check_text("capo 1\nranks 2\nrank 0: F1 B1\nrank 1 chunks 0\nrank 1:\n")},
  });
}

}  // namespace
}  // namespace capo
