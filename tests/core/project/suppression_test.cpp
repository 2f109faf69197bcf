#include "core/project/suppression.h"

#include "core/report/report.h"
#include "tests/support/check_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;

// W of microbatch 0 reads an input that the forward before it overwrote.
constexpr std::string_view kLate = "capo 1\nrank 0: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1";

Checked checked(std::string text) {
  testing_support::Setting setting{.modules = modules_of_kinds({ModuleKind::Linear})};
  setting.plan.kind = PlanKind::Te;
  setting.environment.weight_stream = false;
  return check_in(setting, std::move(text));
}

std::vector<Suppression> read(const std::string& text) {
  auto found = suppressions_in({.name = "a.order", .text = text}, TextForm::OrderFile);
  return found ? *std::move(found) : std::vector<Suppression>{};
}

std::string refusal(const std::string& text) {
  const auto found = suppressions_in({.name = "a.order", .text = text}, TextForm::OrderFile);
  return found ? "" : found.error().finding.message;
}

Suppression of(std::string_view rule) {
  return {.rule = find_rule(rule), .reason = "why", .written_at = "capo.toml:1:1"};
}

std::size_t taken(Checked& from, const Suppression& by) {
  return suppress(from.result, from.input, std::span(&by, 1)).size();
}

TEST(Suppression, IsReadWithRuleEntryAndReason) {
  const auto found =
      read("capo 1\n  # capo:  allow  static-input-reuse  at  W1.0 :  it is  copied \r\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule->id, "B01");
  EXPECT_EQ(found[0].entry, "W1.0");
  EXPECT_EQ(found[0].reason, "it is  copied");
  EXPECT_EQ(found[0].written_at, "a.order:2:3");
}

TEST(Suppression, CoversItsLineOrTheNextThatHoldsAnything) {
  const std::string text =
      "capo 1\n# capo: allow B01: one\n\n# words\n# capo: allow B02: two\nrank 0: F1 # capo: allow "
      "E01: three\n";
  const auto found = read(text);
  ASSERT_EQ(found.size(), 3u);
  for (const Suppression& one : found)
    EXPECT_EQ(text.substr(one.line->offset, one.line->length), "rank 0: F1 ");
}

TEST(Suppression, AtTheEndCoversNothing) {
  EXPECT_EQ(read("capo 1\n# capo: allow B01: one")[0].line, Span{});
}

TEST(Suppression, WithoutRuleOrReasonIsRefused) {
  EXPECT_EQ(refusal("# capo: allow"), "there is no rule ``; `capo rules` lists them");
  EXPECT_EQ(refusal("# capo: allow B01 :  "), "the suppression has no reason");
  EXPECT_EQ(refusal("# capo: allow B01 why"), "a suppression names a rule and a reason");
  EXPECT_EQ(refusal("# capo:"), "`` is no directive of a comment");
}

TEST(Suppression, IsNoneInAFormWithoutComments) {
  const Source source{.name = "a.csv", .text = "0F0 # capo: allow B01: why"};
  EXPECT_TRUE(suppressions_in(source, TextForm::TorchCsv)->empty());
  EXPECT_TRUE(suppressions_in(source, TextForm::Json)->empty());
  EXPECT_EQ(suppressions_in(source, TextForm::TeList)->size(), 1u);
}

TEST(Suppression, OfARuleThatOthersRestOnIsRefused) {
  for (const Rule& rule : catalogue()) {
    const bool alone = rule.pass > Pass::Transfers;
    EXPECT_EQ(suppressible_rule(rule.id).has_value(), alone) << rule.id;
    EXPECT_EQ(refusal(fmt::format("# capo: allow {}: why", rule.id)).empty(), alone) << rule.id;
  }
}

TEST(Suppress, LeavesTheOthersAndTheirVerdict) {
  Checked late = checked(std::string(kLate));
  EXPECT_EQ(taken(late, of("B01")), 1u);
  EXPECT_EQ(late.result.verdict, Verdict::Accepted);
  EXPECT_TRUE(late.result.diagnostics.empty());

  Checked two = checked("capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1 F1.2 W1.0 W1.1 B1.2 W1.2");
  const std::size_t errors = two.result.diagnostics.errors();
  Suppression first = of("B01");
  first.entry = "W1.0";
  EXPECT_GT(errors, 1u);
  EXPECT_EQ(taken(two, first), 1u);
  EXPECT_EQ(two.result.verdict, Verdict::Rejected);
  EXPECT_EQ(two.result.diagnostics.errors(), errors - 1);
}

TEST(Suppress, GoesByRankAndIndex) {
  for (const auto& [rank, index, covers] :
       {std::tuple{0, 3u, true}, std::tuple{0, 2u, false}, std::tuple{1, 3u, false}}) {
    Checked late = checked(std::string(kLate));
    Suppression by = of("B01");
    by.rank = rank;
    by.index = index;
    EXPECT_EQ(taken(late, by), covers ? 1u : 0u) << rank << " " << index;
  }
}

TEST(Suppress, CountsACompositeOnce) {
  Checked late = checked("capo 1\nrank 0: (F1.0) (B1.0 F1.1) W1.0 B1.1 W1.1");
  Suppression by = of("B01");
  by.rank = 0;
  by.index = 2;
  EXPECT_EQ(taken(late, by), 1u);
}

TEST(Suppress, FindsAnEntryOfAReplayToo) {
  Checked late = checked(
      "capo 1\nrank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\nrank 0 replay: F1.0 B1.0 F1.1 W1.0 B1.1 "
      "W1.1");
  ASSERT_EQ(late.result.verdict, Verdict::Rejected);
  const Diagnostic finding = late.result.diagnostics.kept().front();
  Suppression by = of(finding.rule);
  by.rank = 0;
  EXPECT_EQ(taken(late, by), 1u) << finding.message;
}

TEST(Suppress, WarnsOfOneThatCoversNothingIfItsRuleWasJudged) {
  Checked sound = checked("capo 1\nrank 0: F1.0 B1.0");
  EXPECT_EQ(taken(sound, of("B01")), 0u);
  EXPECT_EQ(sound.result.diagnostics.warnings(), 1u);
  EXPECT_EQ(sound.result.verdict, Verdict::Accepted);

  Checked unjudged = check_in({}, "capo 1\nrank 0: F1.0 B1.0");
  EXPECT_EQ(taken(unjudged, of("B01")), 0u);
  EXPECT_EQ(taken(unjudged, of("C01")), 0u);
  EXPECT_TRUE(unjudged.result.diagnostics.empty());

  Checked broken = checked("capo 1\nrank 0: B1.0 F1.0");
  EXPECT_EQ(taken(broken, of("B01")), 0u);
  EXPECT_EQ(broken.result.diagnostics.warnings(), 0u);
}

// A rule that was found more often than it is kept has errors that nobody can see to suppress.
TEST(Suppress, LeavesWhatWasNotKept) {
  testing_support::Setting setting{.modules = modules_of_kinds({ModuleKind::Linear})};
  setting.plan.kind = PlanKind::Te;
  setting.environment.weight_stream = false;
  const Checked whole = check_in(setting, std::string(kLate));
  CheckResult result = whole.result;
  result.diagnostics.narrow(0);
  const Suppression by = of("B01");
  EXPECT_TRUE(suppress(result, whole.input, std::span(&by, 1)).empty());
  EXPECT_EQ(result.verdict, Verdict::Rejected);
  EXPECT_EQ(result.diagnostics.errors(), 1u);
}

TEST(Suppress, OfAProfileThatAcceptsTheErrorStaysWrong) {
  Checked late = checked(std::string(kLate));
  const Opinion accepts{.profile = "te", .accepts = true};
  Report report = report_of(late.input, late.result, {});
  EXPECT_EQ(disagreement(report, accepts), "accepted there and wrong");
  const Suppression by = of("B01");
  auto suppressed = suppress(late.result, late.input, std::span(&by, 1));
  report = report_of(late.input, late.result, {});
  report.suppressed = std::move(suppressed);
  EXPECT_EQ(disagreement(report, accepts), "accepted there and wrong");
}

}  // namespace
}  // namespace capo
