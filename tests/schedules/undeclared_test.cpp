// Whatever nobody declared of how ranks communicate is judged under all of its values: the verdict
// of every schedule, under both plans, is the worst of the verdicts that declaring each value
// gives.

#include "core/rules/undeclared.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "schedules/catalogue.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

namespace capo::schedules {
namespace {

constexpr std::array kLayouts{Communicators::PerRank, Communicators::PerPair,
                              Communicators::PerEdge};
constexpr std::array kModes{TransferMode::Rendezvous, TransferMode::Buffered};

// The messages of errors, each with its rule.
std::set<std::string> errors_of(const CheckResult& result) {
  std::set<std::string> errors;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity == Severity::Error)
      errors.insert(fmt::format("{} {}", finding.rule, finding.message));
  }
  return errors;
}

CheckResult declared(const Input& input, CheckOptions options, Communicators layout,
                     TransferMode mode) {
  options.environment.communicators = layout;
  options.environment.transfers = mode;
  return check(input, options);
}

Verdict verdict_under(const CheckResult& result, std::string_view key, std::string_view value) {
  for (const Undeclared& fact : result.undeclared) {
    if (fact.key != key) continue;
    for (const auto& each : fact.values) {
      if (each.name == value) return each.verdict;
    }
  }
  ADD_FAILURE() << key << " " << value << " is not among the undeclared";
  return Verdict::NoVerdict;
}

// Compares the verdict without declarations with those of all six environments.
Verdict compare(const Input& input, const CheckOptions& options) {
  const CheckResult undeclared = check(input, options);
  std::set<std::string> errors;
  std::map<std::string_view, Verdict> worst;
  Verdict all = Verdict::Accepted;
  for (const Communicators layout : kLayouts) {
    for (const TransferMode mode : kModes) {
      const CheckResult under = declared(input, options, layout, mode);
      EXPECT_TRUE(under.undeclared.empty());
      errors.merge(errors_of(under));
      for (const std::string_view value : {name_of(layout), name_of(mode)}) {
        const auto at = worst.try_emplace(value, Verdict::Accepted).first;
        if (under.verdict == Verdict::Rejected) at->second = all = Verdict::Rejected;
      }
    }
  }
  EXPECT_EQ(undeclared.verdict, all);
  EXPECT_EQ(errors_of(undeclared), errors);
  for (const Communicators layout : kLayouts) {
    EXPECT_EQ(verdict_under(undeclared, "communicators", name_of(layout)), worst[name_of(layout)]);
  }
  for (const TransferMode mode : kModes) {
    EXPECT_EQ(verdict_under(undeclared, "transfers", name_of(mode)), worst[name_of(mode)]);
  }
  return all;
}

CheckOptions with_plan(PlanKind plan) {
  CheckOptions options;
  options.findings_per_rule = 100'000;
  options.plan.kind = plan;
  return options;
}

TEST(Undeclared, EverySchedulesVerdictIsTheWorstOfItsDeclaredOnes) {
  std::size_t schedules = 0;
  std::size_t rejected = 0;
  for (const Entry& entry : entries()) {
    for (std::int32_t ranks = 2; ranks <= 8; ++ranks) {
      for (std::int32_t microbatches = 1; microbatches <= 18; ++microbatches) {
        auto schedule = schedule_named(
            {.name = std::string(entry.name), .ranks = ranks, .microbatches = microbatches});
        if (!schedule) continue;
        ++schedules;
        const Input input{.form = Form::OrderFile, .schedule = *std::move(schedule)};
        SCOPED_TRACE(fmt::format("{} {} {}", entry.name, ranks, microbatches));
        for (const PlanKind plan : {PlanKind::Te, PlanKind::Safe}) {
          rejected += compare(input, with_plan(plan)) == Verdict::Rejected ? 1 : 0;
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GE(schedules, 1514U);
  EXPECT_GT(rejected, 100U);
}

TEST(Undeclared, ADeclaredFactIsNotVaried) {
  const Input input{
      .form = Form::OrderFile,
      .schedule = schedule_named({.name = "1f1b", .ranks = 4, .microbatches = 8}).value()};
  CheckOptions options = with_plan(PlanKind::Te);
  EXPECT_EQ(check(input, options).verdict, Verdict::Rejected);

  options.environment.communicators = Communicators::PerRank;
  const CheckResult modes = check(input, options);
  ASSERT_EQ(modes.undeclared.size(), 1U);
  EXPECT_EQ(modes.undeclared.front().key, "transfers");

  options.environment = {.assume_defaults = true};
  const CheckResult assumed = check(input, options);
  EXPECT_TRUE(assumed.undeclared.empty());
  EXPECT_EQ(assumed.verdict, Verdict::Accepted);
}

// More than are told apart are found where ranks are held together least, few where most.
TEST(Undeclared, FindingsThatAreNotKeptAreCountedWhereMostAreFound) {
  const Input input{
      .form = Form::OrderFile,
      .schedule = schedule_named({.name = "interleaved", .ranks = 4, .microbatches = 200}).value()};
  CheckOptions options;
  options.plan.kind = PlanKind::Te;
  const CheckResult least =
      declared(input, options, Communicators::PerEdge, TransferMode::Buffered);
  const CheckResult most =
      declared(input, options, Communicators::PerRank, TransferMode::Rendezvous);
  EXPECT_GT(least.diagnostics.seen("E01"), findings_to_compare(Context(input, options)));
  EXPECT_LT(most.diagnostics.errors(), 10U);
  const CheckResult undeclared = check(input, options);
  EXPECT_EQ(undeclared.diagnostics.errors(), least.diagnostics.errors());
  EXPECT_EQ(undeclared.diagnostics.seen("E01"), least.diagnostics.seen("E01"));
}

TEST(Undeclared, AFindingNamesTheValuesUnderWhichItAppears) {
  const Input input{
      .form = Form::OrderFile,
      .schedule = schedule_named({.name = "1f1b", .ranks = 4, .microbatches = 8}).value()};
  const CheckResult result = check(input, with_plan(PlanKind::Te));
  ASSERT_FALSE(result.diagnostics.empty());
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "E01");
    ASSERT_FALSE(finding.notes.empty());
    EXPECT_EQ(finding.notes.back().text,
              "it appears with a communicator for each pair of ranks, or one for each direction "
              "between two ranks (--comm was not declared)");
  }
}

}  // namespace
}  // namespace capo::schedules
