#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(NotFinite, NamesTheEntryAndItsPlace) {
  const Checked checked = check_te("[1, nan, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S01@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`nan` at index 1 is not a number");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 3}, ""}}));
  EXPECT_EQ(finding.help.text,
            "write the chunk that runs here; is a value missing where the list was made?");
  EXPECT_TRUE(finding.help.edits.empty()) << "nobody knows which chunk was meant";
}

TEST(NotFinite, TellsInfiniteFromNotANumber) {
  const Checked checked = check_te("[1, -inf, -1]");
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message, "`-inf` at index 1 is infinite");
}

TEST(NotFinite, KnowsEverySpellingThatPythonHas) {
  for (const std::string spelling : {"nan", "NaN", "-nan", "inf", "Inf", "+inf", "-inf", "Infinity",
                                     "-INFINITY", "1e999", "-1e999"}) {
    EXPECT_EQ(check_te("[1, " + spelling + ", -1]").findings(), Findings{"S01@1"}) << spelling;
  }
}

TEST(NotFinite, ReportsEachOfThem) {
  EXPECT_EQ(check_te("[nan, 1, -inf, -1]").findings(), (Findings{"S01@0", "S01@2"}));
}

TEST(NotFinite, NamesTheEntryOfAJsonListWithoutItsQuotes) {
  const Checked checked = check_text(R"({"order": [1, "NaN", -1]})");
  ASSERT_EQ(checked.findings(), Findings{"S01@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`NaN` at index 1 is not a number");
  EXPECT_EQ(finding.witness.tasks.at(0).text, "NaN");
  EXPECT_EQ(checked.input.source.slice(finding.labels.at(0).span), "\"NaN\"");
}

TEST(NotFinite, AcceptsTheListWithoutIt) {
  EXPECT_TRUE(check_te("[1, -1]").accepted());
}

TEST(NotFinite, LeavesTheLargestFiniteNumberToFloatChunk) {
  EXPECT_EQ(check_te("[1, 1.7976931348623157e308, -1]").findings(), Findings{"S03@1"});
}

TEST(NotFinite, LeavesWhatItHidesUnjudgedAndSaysSo) {
  const Checked checked = check_te("[1, nan]");  // nor has chunk 1 a backward
  EXPECT_EQ(checked.findings(), Findings{"S01@1"});
  EXPECT_EQ(checked.result.skipped,
            (std::vector<Pass>{Pass::Counts, Pass::Order, Pass::Placement}));
}

}  // namespace
}  // namespace capo
