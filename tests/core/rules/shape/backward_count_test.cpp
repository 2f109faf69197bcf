#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

// The finding about the entry at `index`.
const Diagnostic& at(const Checked& checked, std::size_t index) {
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    if (finding.witness.tasks.at(0).index == index) return finding;
  }
  throw std::out_of_range("no finding there");
}

TEST(BackwardCount, NamesTheSurplusEntryAndTheChunkThatLacksOne) {
  const Checked checked = check_te("[1, 2, -1, -1]");
  const Diagnostic& finding = at(checked, 3);
  EXPECT_EQ(finding.rule, "S15");
  EXPECT_EQ(finding.message,
            "`-1` at index 3 is a backward of chunk 1 without a forward: the chunk has "
            "1 forward and 2 backwards");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{11, 2}, "no forward is left for it"},
                                                {{4, 1}, "chunk 2 lacks a backward"}}));
  EXPECT_EQ(finding.notes,
            (std::vector<Note>{{"TransformerEngine counts totals only: to it this entry is "
                                "a backward of chunk 2",
                                {}}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "chunk 2 lacks a backward; is `-2` meant?", .edits = {{{11, 2}, "-2"}}}));
}

TEST(BackwardCount, ItsEditCuresTheOrderInEveryForm) {
  for (const std::string text :
       {"[1, 2, -1, -1]", "capo 1\nrank 0: F1 F2 B1 B1\n", R"({"order": [1, 2, -1, -1]})"}) {
    const Checked checked = check_text(text);
    const Edit& edit = at(checked, 3).help.edits.at(0);
    std::string cured = text;
    EXPECT_TRUE(
        check_text(cured.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted())
        << cured;
  }
}

TEST(BackwardCount, ProposesNoChunkWhereSeveralLackABackward) {
  const Checked checked = check_te("[1, 2, 3, -1, -1, -1]");
  EXPECT_EQ(checked.findings(), (Findings{"S15@1", "S15@2", "S15@4"}));
  EXPECT_EQ(at(checked, 4).help,
            (Help{.text = "remove it, or add the forward that it belongs to"}));
}

TEST(BackwardCount, ProposesTheOneChunkThatLacksABackwardAmongThoseThatDoNot) {
  EXPECT_EQ(at(check_te("[1, 2, 3, -3, -1, -1]"), 5).help.text,
            "chunk 2 lacks a backward; is `-2` meant?");
}

TEST(BackwardCount, SaysNothingOfTransformerEngineWhereNoChunkComesBehind) {
  EXPECT_TRUE(at(check_te("[1, 2, -2, -2]"), 3).notes.empty());
}

TEST(BackwardCount, CountsWhatItDoesNotDescribe) {
  std::string text = "[";
  for (int chunk = 1; chunk <= 150; ++chunk) text += std::to_string(chunk) + " ";
  const Checked checked = check_te(text + "]");
  EXPECT_EQ(checked.result.diagnostics.errors(), 150u);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), Diagnostics::kDefaultLimit);
}

TEST(BackwardCount, PointsAtTheForwardThatHasNoBackward) {
  const Checked checked = check_te("[1, 1, 2, 2, -2, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"S15@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "chunk 1 has 2 forwards and only 1 backward");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 1}, "this forward has no backward"}}));
  EXPECT_EQ(finding.help, (Help{.text = "add `-1` after it"}));
}

TEST(BackwardCount, SaysThatAChunkHasNoBackwardAtAll) {
  const Checked checked = check_te("[1, 2, -2]");
  ASSERT_EQ(checked.findings(), Findings{"S15@0"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "chunk 1 has 1 forward and no backward");
}

TEST(BackwardCount, PointsAtTheFirstSurplusEntryHoweverTheyAreOrdered) {
  EXPECT_EQ(check_te("[-1, -1, 1]").findings(), (Findings{"S23@0", "S15@1"}));
  EXPECT_EQ(check_te("[1, -1, -1, -1]", {.microbatches = 1}).findings(), Findings{"S15@2"});
}

TEST(BackwardCount, NamesTheRankAndTheOrder) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 1: F1 B1 B1\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`B1` at index 2 of rank 1 is a backward of chunk 1 without a forward: the chunk has 1 "
            "forward "
            "and 2 backwards");
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 B1\n")
                .result.diagnostics.kept()
                .at(0)
                .message,
            "`B1` at index 2 of rank 0's replay order is a backward of chunk 1 without a forward: "
            "the chunk "
            "has 1 forward and 2 backwards");
}

TEST(BackwardCount, SaysNothingOfTransformerEngineInOtherForms) {
  EXPECT_TRUE(at(check_text("capo 1\nrank 0: F1 F2 B1 B1\n"), 3).notes.empty());
}

TEST(BackwardCount, AcceptsEqualNumbersInAnyOrder) {
  EXPECT_TRUE(check_te("[1, 1, 2, -1, 2, -2, -1, -2]").accepted());
}

TEST(BackwardCount, LeavesTheForwardsToUnequalMicrobatchesWhereTheBackwardsAreRight) {
  EXPECT_EQ(check_te("[1, 1, -1, -1, 2, -2, -2]").findings(), Findings{"S14@4"});
  EXPECT_EQ(check_te("[1, 1, -1]", {.microbatches = 1}).findings(), Findings{"S14@1"});
}

TEST(BackwardCount, LeavesTheOrderOfEntriesToBackwardAhead) {
  EXPECT_EQ(check_te("[1, -1, -1, 1]").findings(), Findings{"S23@2"});
}

TEST(BackwardCount, LeavesNamedMicrobatchesToMissingAndRepeatedAction) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 F1.1 B1.0\n").findings(), Findings{"S21@1"});
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 B1.0\n").findings(), Findings{"S20@1"});
}

TEST(BackwardCount, CountsNoDispatchAndNoCombine) {
  const auto shape = [](const std::string& order) {
    Findings findings = check_text("capo 1\nrank 0: " + order + "\n").findings();
    std::erase_if(findings, [](const std::string& finding) { return !finding.starts_with("S"); });
    return findings;
  };
  EXPECT_EQ(shape("F1 dispatch-F1 dispatch-F1 B1 dispatch-B1 combine-B1 combine-B1"), Findings{});
  EXPECT_EQ(shape("F1.0 combine-F1.0 B1.0 dispatch-B1.0 dispatch-B1.0"), Findings{});
}

}  // namespace
}  // namespace capo
