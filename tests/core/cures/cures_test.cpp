#include "core/cures/cures.h"

#include "core/input/load.h"
#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace capo {
namespace {

Input list(const std::string& text) {
  return load(Source{.name = "<order>", .text = text}, {.form = TextForm::TeList}).value();
}

std::optional<CheckResult> judge(const std::string& text) {
  auto input = load(Source{.name = "<order>", .text = text}, {.form = TextForm::TeList});
  if (!input) return std::nullopt;
  return check(*input);
}

std::optional<Slip> slip_in(const std::string& text, CureOptions options = {}) {
  const Input input = list(text);
  return find_slip(check(input), input, judge, options);
}

// The order of one rank that interleaves two chunks over eight microbatches, with weight gradients.
std::string long_order() {
  std::string text = "[";
  for (int m = 0; m < 8; ++m) text += "1, 2, -2, -2.5, -1, -1.5, ";
  text.resize(text.size() - 2);
  return text + "]";
}

std::string with(std::string text, std::size_t nth, const std::string& token,
                 const std::string& other) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= nth; ++i) at = text.find(token, at + 1);
  return text.replace(at, token.size(), other);
}

TEST(Slip, IsCalledByItsName) {
  const std::string sound = long_order();
  ASSERT_EQ(check(list(sound)).verdict, Verdict::Accepted);
  const std::string slipped = with(sound, 5, " -2.5", " -2");
  const auto slip = slip_in(slipped);
  ASSERT_TRUE(slip.has_value());
  EXPECT_EQ(slip->text, sound);
  EXPECT_EQ(slip->finding.message, "`-2` at index 33 is probably `-2.5`");
  EXPECT_EQ(slip->finding.witness.kind, WitnessKind::Entries);
  EXPECT_EQ(
      slip->finding.witness.tasks,
      (std::vector<WitnessEntry>{{.rank = 0, .index = 33, .text = "-2", .action = "B(c2,m6)"}}));
}

// Two forwards, three backwards and one weight gradient: the count in the middle is the usual one.
TEST(Slip, OfASingleChunkIsFoundThoughNoCountOccursTwice) {
  const auto slip = slip_in("[1, -1, -1, 1, -1, -1.5]");
  ASSERT_TRUE(slip.has_value());
  EXPECT_EQ(slip->finding.message, "`-1` at index 2 is probably `-1.5`");
  EXPECT_EQ(slip->position, 2U);
  EXPECT_EQ(slip->meant.kind, Kind::BackwardWeight);
}

TEST(Slip, EveryEntryWrittenForAnotherIsFoundOrLeftAlone) {
  const std::string sound = long_order();
  int found = 0;
  for (const auto& [token, other] : {std::pair(" -2.5", " -2"), std::pair(" -1,", " -2,"),
                                     std::pair(" 2,", " 1,"), std::pair(" -1.5", " -2.5")}) {
    for (std::size_t nth = 0; nth < 7; ++nth) {
      const auto slip = slip_in(with(sound, nth, token, other));
      if (!slip) continue;
      ++found;
      EXPECT_EQ(check(list(slip->text)).verdict, Verdict::Accepted);
    }
  }
  EXPECT_GE(found, 14);
}

// A later `-1` could be the weight gradient as well, but none follows a forward elsewhere.
TEST(Slip, OfSeveralIsTheOneThatStandsAsElsewhere) {
  const auto slip = slip_in("[1, 1, -1, -1.5, 1, -1, -1, 1, -1, -1.5, -1, -1.5]");
  ASSERT_TRUE(slip.has_value());
  EXPECT_EQ(slip->finding.message, "`-1` at index 6 is probably `-1.5`");
  EXPECT_EQ(slip->text, "[1, 1, -1, -1.5, 1, -1, -1.5, 1, -1, -1.5, -1, -1.5]");
  ASSERT_EQ(slip->finding.notes.size(), 2U);
  EXPECT_TRUE(slip->finding.notes.front().text.starts_with("elsewhere too"));
}

// The second and the third backward may be the weight gradient: behind a backward, and before a
// backward or a weight gradient, it stands elsewhere.
TEST(Slip, OfSeveralThatStandAsElsewhereNoneIsNamed) {
  EXPECT_FALSE(slip_in("[1, 1, 1, 1, -1, -1, -1, -1.5, -1, -1, -1.5, -1.5]").has_value());
}

TEST(Slip, IsNotLookedForInASoundOrderNorBeyondTheBudget) {
  EXPECT_FALSE(slip_in(long_order()).has_value());
  // Nine entries may be the slip, and each trial judges 48 entries and one.
  const std::string slipped = with(long_order(), 5, " -2.5", " -2");
  EXPECT_TRUE(slip_in(slipped, {.budget = 9 * 49}).has_value());
  EXPECT_FALSE(slip_in(slipped, {.budget = 9 * 49 - 1}).has_value());
}

TEST(Slip, TwoOfThemHaveNoName) {
  EXPECT_FALSE(slip_in(with(with(long_order(), 5, " -2.5", " -2"), 1, " -1.5", " -1")).has_value());
}

Diagnostic with_edit(std::string_view rule, Edit edit) {
  return {.rule = rule,
          .message = "wrong",
          .labels = {{edit.span, ""}},
          .help = {.text = "do this", .edits = {edit}}};
}

TEST(Cures, AnEditThatDoesNotCureIsTakenAway) {
  const Input input = list("[1, -1, -1]");
  CheckResult result = check(input);
  ASSERT_EQ(result.diagnostics.kept().size(), 1U);
  const std::string_view rule = result.diagnostics.kept().front().rule;
  const Span surplus{.offset = 6, .length = 4};  // the last entry with its comma

  result.diagnostics.replace_by(with_edit(rule, {.span = surplus, .replacement = ""}));
  keep_cures_that_work(result, input, judge);
  EXPECT_EQ(result.diagnostics.kept().front().help.edits.size(), 1U);

  result.diagnostics.replace_by(with_edit(rule, {.span = surplus, .replacement = ", -2"}));
  keep_cures_that_work(result, input, judge);
  EXPECT_TRUE(result.diagnostics.kept().front().help.edits.empty());
  EXPECT_TRUE(result.diagnostics.kept().front().help.text.empty());
}

// Judged as if each entry `-1` of the text broke a rule, with that severity.
JudgeText judge_entries(Severity severity, std::size_t limit) {
  return [severity, limit](const std::string& text) -> std::optional<CheckResult> {
    CheckResult result{.diagnostics = Diagnostics(limit)};
    for (std::size_t at = text.find("-1"); at != text.npos; at = text.find("-1", at + 2)) {
      Diagnostic finding = with_edit(
          "S15",
          {.span = {.offset = static_cast<std::uint32_t>(at), .length = 2}, .replacement = "1"});
      finding.severity = severity;
      result.diagnostics.add(std::move(finding));
    }
    return result;
  };
}

std::size_t left_after_trials(Severity severity, std::size_t limit, const std::string& written) {
  const Input input = list("[1, -1, -1, -1]");
  const JudgeText judge = judge_entries(severity, limit);
  CheckResult result = *judge(input.source.text);
  result.diagnostics.revise(
      [&](Diagnostic& finding) { finding.help.edits.front().replacement = written; });
  keep_cures_that_work(result, input, judge);
  std::size_t left = 0;
  for (const Diagnostic& finding : result.diagnostics.kept()) left += finding.help.edits.size();
  return left;
}

TEST(Cures, OfWarningsAreTriedToo) {
  EXPECT_EQ(left_after_trials(Severity::Warning, 100, "1"), 3U);
  EXPECT_EQ(left_after_trials(Severity::Warning, 100, "-1"), 0U);
}

TEST(Cures, AreCountedBeyondTheFindingsThatAreKept) {
  for (const Severity severity : {Severity::Error, Severity::Warning}) {
    EXPECT_EQ(left_after_trials(severity, 2, "1"), 2U);
    EXPECT_EQ(left_after_trials(severity, 2, "-1"), 0U);
  }
}

TEST(Cures, OfAWarningMakeNoError) {
  const Input input = list("[1, -1]");
  CheckResult result{.diagnostics = Diagnostics(100)};
  Diagnostic warning = with_edit("S15", {.span = {.offset = 4, .length = 2}, .replacement = "1"});
  warning.severity = Severity::Warning;
  result.diagnostics.add(warning);
  keep_cures_that_work(result, input, [](const std::string&) {
    CheckResult after{.diagnostics = Diagnostics(100)};
    after.diagnostics.add({.rule = "S16"});
    return after;
  });
  EXPECT_TRUE(result.diagnostics.kept().front().help.edits.empty());
}

TEST(Cures, OfErrorsAreTriedBeforeThoseOfWarnings) {
  const Input input = list("[1, -1]");
  CheckResult result{.diagnostics = Diagnostics(100)};
  const Edit edit{.span = {.offset = 4, .length = 2}, .replacement = "1"};
  result.diagnostics.add(with_edit("S15", edit));
  result.diagnostics.add(with_edit("S16", edit));
  bool warning = true;
  result.diagnostics.revise([&](Diagnostic& finding) {
    if (std::exchange(warning, false)) finding.severity = Severity::Warning;
  });
  const auto nothing_left = [](const std::string&) { return CheckResult{}; };
  keep_cures_that_work(result, input, nothing_left, {.budget = 3});
  EXPECT_TRUE(result.diagnostics.kept().at(0).help.edits.empty());
  EXPECT_FALSE(result.diagnostics.kept().at(1).help.edits.empty());
}

TEST(Cures, WhatNobodyHadTheTimeToTryIsTakenAway) {
  const Input input = list("[1, -1, -1]");
  CheckResult result = check(input);
  const std::string_view rule = result.diagnostics.kept().front().rule;
  const Edit edit{.span = {.offset = 6, .length = 4}, .replacement = ""};
  result.diagnostics.replace_by(with_edit(rule, edit));
  keep_cures_that_work(result, input, judge, {.budget = 3});
  EXPECT_TRUE(result.diagnostics.kept().front().help.edits.empty());
}

}  // namespace
}  // namespace capo
