// The rules of core/rules/streams.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "core/input/load.h"
#include "core/rules/check.h"
#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_in;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::Found;
using testing_support::shows;

// Shapes differ, so that nothing is shared but the workspace.
Module grouped(const char* name, std::int64_t columns, std::int64_t groups) {
  return {.name = name,
          .kind = ModuleKind::GroupedLinear,
          .shape = {.tokens = 512, .hidden = columns, .ffn = columns, .groups = groups},
          .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true},
          .splits = Splits::Device};
}

Checked check_pair(const Module& first, const Module& second, const std::string& text,
                   std::optional<PlanKind> plan = PlanKind::Te, bool weight_stream = true) {
  return check_in({.environment = {.weight_stream = weight_stream},
                   .modules = {.list = {first, second}, .layers = {{{0}, {1}}}},
                   .plan = {.kind = plan}},
                  text);
}

const Module kNarrow = grouped("narrow", 64, 8);
const Module kWide = grouped("wide", 128, 8);
constexpr const char* kBeside = "[1, 2, -2, -2.5, -1, -1.5]";

TEST(WorkspaceRace, ConcernsGroupedProducts) {
  Module plain = kWide;
  plain.kind = ModuleKind::Linear;
  EXPECT_TRUE(check_pair(kNarrow, plain, kBeside).findings().empty());
  plain.kind.reset();
  EXPECT_TRUE(check_pair(kNarrow, plain, kBeside).findings().empty()) << "of no kind";
}

TEST(WorkspaceRace, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsBothProducts", check_pair(kNarrow, kWide, kBeside), "E02@3",
       shows("error replay: 0:3 -2.5 W(c2,m0), 0:4 -1 B(c1,m0)")},
      {"IsBesideAForwardToo", check_pair(kNarrow, kWide, "[1, -1, -1.5, 2, -2, -2.5]"), "E02@2"},
      {"IsNoneOnOneStream", check_pair(kNarrow, kWide, kBeside, PlanKind::Te, false)},
      {"IsNoneWhereTheNumbersOfGroupsDiffer",
       check_pair(kNarrow, grouped("wide", 128, 4), kBeside)},
      {"IsNoneWhereEverythingIsWaitedFor", check_pair(kNarrow, kWide, "[1, 2, -2, -1, -1.5, -2.5]"),
       "", because("weight gradients share a stream")},
  });
}

TEST(WorkspaceRace, IsOneFindingForEachRankAndNumberOfGroups) {
  const Checked checked = check_pair(kNarrow, kWide,
                                     "capo 1\nchunks 2\n"
                                     "rank 0: F1.0 F2.0 B2.0 W2.0 B1.0 W1.0\n"
                                     "rank 1: F1.0 B1.0 W1.0 F2.0 B2.0 W2.0\n");
  ASSERT_EQ(checked.findings(), (Found{"E02@3", "E02@2"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).witness.tasks.front().rank, 1);
}

TEST(WorkspaceRace, WithoutAPlanOrUnderCaposIsNone) {
  EXPECT_TRUE(check_pair(kNarrow, kWide, kBeside, std::nullopt).of(Family::Streams).empty());
  EXPECT_TRUE(check_pair(kNarrow, kWide, kBeside, PlanKind::Safe).findings().empty());
}

std::vector<std::string> warned(const Environment& environment, const std::string& text,
                                std::optional<PlanKind> plan = PlanKind::Te) {
  const Input input = load(Source{.name = "<test>", .text = text}, {}).value();
  const CheckResult result = check(
      input,
      {.environment = environment,
       .modules = {.list = {{.name = "linear", .kind = ModuleKind::Linear}}, .layers = {{{0}}}},
       .plan = {.kind = plan}});
  EXPECT_EQ(result.verdict, Verdict::Accepted) << text;
  std::vector<std::string> rules;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    EXPECT_EQ(finding.severity, Severity::Warning);
    rules.emplace_back(finding.rule);
  }
  return rules;
}

TEST(WeightStream, IsWarnedOfWhereNobodySaysThatThereIsNone) {
  const std::string late = "[1, -1, -1.5, 1, -1, -1.5]";
  EXPECT_EQ(warned({}, late), std::vector<std::string>{"E01"});
  EXPECT_TRUE(warned({.weight_stream = false}, late).empty());
  EXPECT_TRUE(warned({.assume_defaults = true}, late).empty());
  EXPECT_TRUE(warned({}, late, PlanKind::Safe).empty());
  EXPECT_TRUE(warned({}, "[1, -1, -1.5]").empty());
  EXPECT_TRUE(warned({}, "[1, -1, 1, -1]").empty());
}

TEST(WeightStream, IsNoQuestionWhereMegatronCallsTheTransfers) {
  const std::string order = "capo 1\nplacement chain\nrank 0: F1 B1 W1 F1 B1 W1\n";
  EXPECT_EQ(warned({}, order), std::vector<std::string>{"E01"});
  EXPECT_TRUE(warned({.p2p = MegatronCalls::Batch}, order).empty());
}

}  // namespace
}  // namespace capo
