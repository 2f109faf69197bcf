#include "core/report/patterns.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

Diagnostic finding(std::string_view rule, std::string message,
                   Severity severity = Severity::Error) {
  return {.rule = rule, .severity = severity, .message = std::move(message)};
}

std::vector<std::pair<std::size_t, std::string>> patterns(const std::vector<Diagnostic>& findings) {
  std::vector<std::pair<std::size_t, std::string>> out;
  for (const Pattern& pattern : patterns_of(findings)) {
    out.emplace_back(pattern.findings.size(), pattern.words);
  }
  return out;
}

using Expected = std::vector<std::pair<std::size_t, std::string>>;

TEST(Patterns, NumbersThatDifferBecomeARange) {
  EXPECT_EQ(patterns({finding("E01", "`B1` at index 82 of rank 3"),
                      finding("E01", "`B4` at index 7 of rank 3"),
                      finding("E01", "`B2` at index 90 of rank 3")}),
            (Expected{{3, "`B1..4` at index 7..90 of rank 3"}}));
}

TEST(Patterns, OtherWordsRulesAndSeveritiesAreOtherPatterns) {
  EXPECT_EQ(
      patterns({finding("E01", "`B1` races"), finding("E01", "`W1` races"),
                finding("B04", "`B1` races"), finding("E01", "`B1` races", Severity::Warning),
                finding("E01", "`B2` races")}),
      (Expected{{2, "`B1..2` races"}, {1, "`W1` races"}, {1, "`B1` races"}, {1, "`B1` races"}}));
}

TEST(Patterns, ANumberTooLargeToCountIsAWord) {
  const std::string large = "18446744073709551616";
  EXPECT_EQ(patterns({finding("S03", "entry " + large), finding("S03", "entry 1")}),
            (Expected{{1, "entry " + large}, {1, "entry 1"}}));
}

TEST(Patterns, NothingHasNone) {
  EXPECT_TRUE(patterns({}).empty());
}

}  // namespace
}  // namespace capo
