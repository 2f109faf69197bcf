// Every fault of a declared module or of a reduction is reported, by its rule, at its place; and
// what TransformerEngine keeps is at no fault.

#include <capo/core/text/order_printer.h>
#include <capo/testing/faults/faults.h>
#include <capo/testing/generators/sound_declared.h>
#include <capo/tests/support/check_text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <span>

namespace capo::testing {
namespace {

using testing_support::check_in;
using testing_support::Checked;

Checked check_declared(const Declared& declared) {
  const testing_support::Setting setting{.modules = declared.options.modules,
                                         .plan = declared.options.plan};
  if (!declared.table)
    return check_in(setting, print_order_file(declared.schedule), {.form = TextForm::OrderFile});
  const Table table = table_of(declared.schedule);
  return check_in(setting, table.text(), {.form = TextForm::TorchCsv, .torch = table.declarations});
}

bool is_expected(const Diagnostic& finding, const Broken<Declared>& broken) {
  if (finding.rule != broken.rule || finding.severity != Severity::Error) return false;
  const auto& tasks = finding.witness.tasks;
  return !tasks.empty() &&
         FaultPlace{.rank = tasks.front().rank, .index = tasks.front().index} == *broken.place;
}

RC_GTEST_PROP(ModuleFaults, AreReportedByTheirRuleAtTheirPlace, ()) {
  const Declared sound = *sound_declared();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const ModuleFault& fault : module_faults()) {
    const auto broken = fault.apply(sound, choice);
    if (!broken) continue;
    const Checked checked = check_declared(broken->subject);
    const auto& findings = checked.result.diagnostics.kept();
    const bool found =
        std::any_of(findings.begin(), findings.end(),
                    [&](const Diagnostic& finding) { return is_expected(finding, *broken); });
    if (found && checked.result.verdict == Verdict::Rejected) continue;
    RC_LOG() << rc::toString(broken->subject) << "\n";
    RC_FAIL(fmt::format("{}: expected {} at rank {} index {}, found [{}]", fault.name, broken->rule,
                        broken->place->rank, broken->place->index,
                        fmt::join(checked.findings(), " ")));
  }
}

RC_GTEST_PROP(ModuleFaults, AreNotSeenWhereThereAreNone, ()) {
  const Declared sound = *sound_declared();
  const Checked checked = check_declared(sound);
  RC_ASSERT(checked.of(Family::Gradients).empty());
  RC_ASSERT(checked.of(Family::Capture).empty());
}

// One of the faults, applied to something sound; nothing where it has nothing to break.
std::optional<Broken<Declared>> any_broken() {
  const Declared sound = *sound_declared();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  const std::span<const ModuleFault> faults = module_faults();
  return faults[choice % faults.size()].apply(sound, choice / faults.size());
}

// Under capo's plan only the order itself can be at fault.
RC_GTEST_PROP(ModuleFaults, OfTransformerEngineAreNoneUnderCaposPlan, ()) {
  auto broken = any_broken();
  if (!broken || broken->rule == "G13" || broken->rule == "G14") return;
  if (broken->rule == "C01") return;  // capo's own split path bakes sizes in just the same
  broken->subject.options.plan.kind = PlanKind::Safe;
  const Checked checked = check_declared(broken->subject);
  RC_ASSERT(checked.of(Family::Gradients).empty());
  RC_ASSERT(checked.of(Family::Capture).empty());
}

// A plan that nobody declared is no ground for an error. What ops.BasicLinear overwrites is lost
// besides, whoever captures it.
RC_GTEST_PROP(ModuleFaults, OfTransformerEngineLeaveTheVerdictAloneWithoutAPlan, ()) {
  auto broken = any_broken();
  if (!broken || broken->rule == "G05" || broken->rule == "G06" || broken->rule >= "G12") return;
  broken->subject.options.plan.kind.reset();
  const Checked checked = check_declared(broken->subject);
  RC_ASSERT(checked.accepted());
  const Family family = broken->rule.front() == 'G' ? Family::Gradients : Family::Capture;
  RC_ASSERT(!checked.of(family).empty());
}

}  // namespace
}  // namespace capo::testing
