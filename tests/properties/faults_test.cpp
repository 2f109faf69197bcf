// Every fault that is injected into something sound is reported, by its rule, at its place.

#include <capo/core/text/order_printer.h>
#include <capo/testing/faults/faults.h>
#include <capo/testing/generators/sound_order.h>
#include <capo/testing/generators/sound_schedule.h>
#include <capo/tests/support/check_text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace capo::testing {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;

Checked check_subject(const TeOrder& order) {
  return check_te(order.text(), order.declarations());
}

Checked check_subject(const Schedule& schedule) {
  return check_text(print_order_file(schedule), {.form = TextForm::OrderFile});
}

Checked check_subject(const Table& table) {
  return check_csv(table.text(), table.declarations);
}

Checked check_subject(const Communication& communication) {
  return check_in({.environment = communication.environment, .groups = communication.groups},
                  print_order_file(communication.schedule), {.form = TextForm::OrderFile});
}

bool is_expected(const Diagnostic& finding, std::string_view rule,
                 const std::optional<FaultPlace>& place) {
  if (finding.rule != rule) return false;
  if (!place) return finding.witness.tasks.empty();
  const auto& tasks = finding.witness.tasks;
  const bool cycle = rule == "D04" || finding.witness.kind == WitnessKind::WaitCycle;
  const auto last = tasks.empty() || cycle ? tasks.end() : tasks.begin() + 1;
  return std::any_of(tasks.begin(), last, [&](const TaskReference& task) {
    return FaultPlace{.rank = task.rank, .index = task.index} == *place;
  });
}

template <typename Subject>
void require_reports(std::span<const Fault<Subject>> faults, const Subject& sound,
                     std::size_t choice) {
  for (const Fault<Subject>& fault : faults) {
    const auto broken = fault.apply(sound, choice);
    if (!broken) continue;
    const Checked checked = check_subject(broken->subject);
    const auto& findings = checked.result.diagnostics.kept();
    const bool found =
        std::any_of(findings.begin(), findings.end(), [&](const Diagnostic& finding) {
          return is_expected(finding, broken->rule, broken->place);
        });
    if (found && checked.result.verdict == Verdict::Rejected) continue;
    RC_LOG() << rc::toString(broken->subject) << "\n";
    RC_FAIL(fmt::format(
        "{}: expected {} at {}, found [{}]", fault.name, broken->rule,
        broken->place ? fmt::format("rank {} index {}", broken->place->rank, broken->place->index)
                      : "no place",
        fmt::join(checked.findings(), " ")));
  }
}

std::size_t any_choice() {
  return *rc::gen::inRange<std::size_t>(0, 10'000);
}

RC_GTEST_PROP(Faults, OfAListAreReportedByTheirRuleAtTheirPlace, ()) {
  require_reports(list_faults(), *sound_order(), any_choice());
}

RC_GTEST_PROP(Faults, OfANamedOrderAreReportedByTheirRuleAtTheirPlace, ()) {
  require_reports(order_faults(), *sound_named_schedule(), any_choice());
}

RC_GTEST_PROP(Faults, OfATableAreReportedByTheirRuleAtTheirPlace, ()) {
  require_reports(table_faults(), table_of(*sound_named_schedule()), any_choice());
}

RC_GTEST_PROP(Faults, OfCommunicationAreReportedByTheirRuleAtTheirPlace, ()) {
  require_reports(communication_faults(), *sound_communication(), any_choice());
}

}  // namespace
}  // namespace capo::testing
