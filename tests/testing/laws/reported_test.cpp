// A fault counts as reported only by its own rule, as an error, at its own place.

#include "testing/laws/reported.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

Checked verdict_with(std::string_view rule, Severity severity, WitnessKind kind = {}) {
  Diagnostic finding{.rule = rule, .severity = severity};
  finding.witness.kind = kind;
  finding.witness.tasks = {{.rank = 1, .index = 4}, {.rank = 1, .index = 7}};
  Checked verdict;
  verdict.result.diagnostics.add(finding);
  return verdict;
}

constexpr Place kFirst{.rank = 1, .index = 4};
constexpr Place kSecond{.rank = 1, .index = 7};

TEST(Reported, IsByTheRuleAtTheFirstOfTheWitness) {
  const Checked verdict = verdict_with("S15", Severity::Error);
  EXPECT_TRUE(reports(verdict, "S15", kFirst));
  EXPECT_FALSE(reports(verdict, "S16", kFirst));
  EXPECT_FALSE(reports(verdict, "S15", kSecond));
  EXPECT_FALSE(reports(verdict, "S15", Place{.rank = 0, .index = 4}));
}

TEST(Reported, IsAnErrorAndNoWarning) {
  EXPECT_FALSE(reports(verdict_with("S15", Severity::Warning), "S15", kFirst));
}

TEST(Reported, IsAnywhereOfACircle) {
  EXPECT_TRUE(reports(verdict_with("D04", Severity::Error), "D04", kSecond));
  EXPECT_TRUE(
      reports(verdict_with("D01", Severity::Error, WitnessKind::WaitCycle), "D01", kSecond));
}

TEST(Reported, OfAPeakIsOnItsRank) {
  EXPECT_TRUE(reports(verdict_with("B08", Severity::Error), "B08", Place{1, 99}));
  EXPECT_FALSE(reports(verdict_with("B08", Severity::Error), "B08", Place{0, 4}));
}

TEST(Reported, WithoutAPlaceIsAFindingWithoutEntries) {
  EXPECT_FALSE(reports(verdict_with("S13", Severity::Error), "S13", std::nullopt));
  Checked verdict;
  verdict.result.diagnostics.add({.rule = "S13", .severity = Severity::Error});
  EXPECT_TRUE(reports(verdict, "S13", std::nullopt));
}

}  // namespace
}  // namespace capo::testing
