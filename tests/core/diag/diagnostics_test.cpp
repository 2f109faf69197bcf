#include "core/diag/diagnostics.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

Diagnostic at(std::uint32_t offset, std::string_view rule) {
  return {.rule = rule, .labels = {{{offset, 1}, ""}}};
}

TEST(Diagnostics, KeepsALimitedNumberOfEachRuleAndCountsAll) {
  Diagnostics diagnostics(2);
  for (std::uint32_t i = 0; i < 5; ++i) diagnostics.add(at(i, "S01"));
  diagnostics.add(at(9, "S02"));
  EXPECT_EQ(diagnostics.kept().size(), 3U);
  EXPECT_EQ(diagnostics.errors(), 6U);
  EXPECT_EQ(diagnostics.dropped(), 3U);
  EXPECT_TRUE(diagnostics.full("S01"));
  EXPECT_FALSE(diagnostics.full("S02"));
}

TEST(Diagnostics, CountsWhatNobodyWillDescribe) {
  Diagnostics diagnostics;
  diagnostics.count_unseen("S21", 1'000'000);
  EXPECT_EQ(diagnostics.errors(), 1'000'000U);
  EXPECT_TRUE(diagnostics.kept().empty());
  EXPECT_FALSE(diagnostics.empty());
}

TEST(Diagnostics, TellsWarningsFromErrors) {
  Diagnostics diagnostics;
  diagnostics.add({.rule = "S01", .severity = Severity::Warning});
  EXPECT_EQ(diagnostics.warnings(), 1U);
  EXPECT_EQ(diagnostics.errors(), 0U);
}

TEST(Diagnostics, PutsAFindingBeforeAllOthers) {
  Diagnostics diagnostics(2);
  diagnostics.add(at(3, "S01"));
  diagnostics.add({.rule = "S09", .severity = Severity::Warning});
  diagnostics.put_first(at(7, "S02"));
  ASSERT_EQ(diagnostics.kept().size(), 3U);
  EXPECT_EQ(diagnostics.kept().front(), at(7, "S02"));
  EXPECT_EQ(diagnostics.errors(), 2U);
  EXPECT_EQ(diagnostics.warnings(), 1U);
}

TEST(Diagnostics, PutsAFindingInThePlaceOfTheLastOfItsRuleAtTheLimit) {
  Diagnostics diagnostics(2);
  for (const std::uint32_t offset : {3U, 5U}) diagnostics.add(at(offset, "S01"));
  diagnostics.add(at(9, "S02"));
  diagnostics.put_first(at(7, "S01"));
  EXPECT_EQ(diagnostics.kept(),
            (std::vector<Diagnostic>{at(7, "S01"), at(3, "S01"), at(9, "S02")}));
  EXPECT_EQ(diagnostics.errors(), 4U);
  EXPECT_EQ(diagnostics.dropped(), 1U);

  Diagnostics none(0);
  none.put_first(at(7, "S01"));
  EXPECT_TRUE(none.kept().empty());
  EXPECT_EQ(none.errors(), 1U);
}

TEST(Diagnostics, SortsByPlaceThenByRule) {
  Diagnostics diagnostics;
  diagnostics.add(at(7, "S02"));
  diagnostics.add(at(3, "S09"));
  diagnostics.add(at(3, "S01"));
  diagnostics.sort();
  EXPECT_EQ(diagnostics.kept().at(0).rule, "S01");
  EXPECT_EQ(diagnostics.kept().at(1).rule, "S09");
  EXPECT_EQ(diagnostics.kept().at(2).rule, "S02");
}

TEST(Diagnostics, RemembersTheFirstErrorAlone) {
  Diagnostics diagnostics = Diagnostics::first_error_only();
  diagnostics.add(at(7, "S02"));
  diagnostics.add({.rule = "S01", .severity = Severity::Warning});
  EXPECT_EQ(diagnostics.first_error(), (FirstError{.rule = "S02", .place = Span{7, 1}}));
  EXPECT_FALSE(diagnostics.wants_at("S09", Span{3, 1})) << "no words are wanted";
  EXPECT_FALSE(diagnostics.wants_at("S04", [] { return Span{3, 1}; }));
  EXPECT_EQ(diagnostics.first_error(), (FirstError{.rule = "S04", .place = Span{3, 1}}));
  diagnostics.add({.rule = "S18"});
  EXPECT_EQ(diagnostics.first_error(), (FirstError{.rule = "S18", .place = std::nullopt}));
  EXPECT_EQ(diagnostics.errors(), 4U);
  EXPECT_TRUE(diagnostics.kept().empty());
  diagnostics.clear();
  EXPECT_FALSE(diagnostics.first_error());
  EXPECT_EQ(diagnostics.errors(), 0U);
}

TEST(Diagnostics, AskForAPlaceOnlyWhereItCouldBeTheFirst) {
  Diagnostics all(2);
  const auto unknown = []() -> Span {
    ADD_FAILURE() << "words say where it stands";
    return {};
  };
  EXPECT_TRUE(all.wants_at("S14", unknown));
  EXPECT_TRUE(all.wants_at("S14", unknown));
  EXPECT_FALSE(all.wants_at("S14", unknown)) << "the limit holds";
  EXPECT_FALSE(Diagnostics::first_error_only().wants_at("S14", unknown, Severity::Warning));
}

TEST(Diagnostics, AreNarrowedToTheFirstOfEachRuleAndStayCounted) {
  Diagnostics findings(10);
  for (int at = 0; at < 3; ++at) {
    findings.add({.rule = "S01", .severity = Severity::Warning});
    findings.add({.rule = "S02", .message = std::to_string(at)});
  }
  findings.narrow(2);
  ASSERT_EQ(findings.kept().size(), 4U);
  EXPECT_EQ(findings.kept().back().message, "1");
  EXPECT_EQ(findings.errors(), 3U);
  EXPECT_EQ(findings.dropped(), 2U);
  EXPECT_TRUE(findings.full("S02"));
}

TEST(Diagnostic, EditsAreMadeFromTheBack) {
  EXPECT_EQ(edited("1 2 3", {{.span = {.offset = 0, .length = 1}, .replacement = "10"},
                             {.span = {.offset = 4, .length = 1}, .replacement = ""}}),
            "10 2 ");
}

}  // namespace
}  // namespace capo
