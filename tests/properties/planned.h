// What the properties of plans share: a step checked with what it declares, and whether a finding
// is the one that a fault has to give.

#pragma once

#include <capo/core/text/order_printer.h>
#include <capo/testing/faults/faults.h>
#include <capo/tests/support/check_text.h>

#include <algorithm>
#include <string_view>

namespace capo::testing {

[[nodiscard]] inline testing_support::Checked check_planned(const Declared& declared) {
  return testing_support::check_in({.environment = declared.options.environment,
                                    .modules = declared.options.modules,
                                    .plan = declared.options.plan},
                                   print_order_file(declared.schedule),
                                   {.form = TextForm::OrderFile});
}

[[nodiscard]] inline bool reports(const testing_support::Checked& checked, std::string_view rule) {
  const auto& findings = checked.result.diagnostics.kept();
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Diagnostic& finding) { return finding.rule == rule; });
}

/// At the fault's place: of the peak of a rank and of the first of many races only the rank is
/// known.
[[nodiscard]] inline bool reports(const testing_support::Checked& checked,
                                  const Broken<Declared>& broken) {
  const bool anywhere_on_its_rank = broken.rule == "B08" || broken.rule == "E02";
  const auto is_expected = [&](const Diagnostic& finding) {
    if (finding.rule != broken.rule || finding.severity != Severity::Error) return false;
    const auto& tasks = finding.witness.tasks;
    return !tasks.empty() && tasks.front().rank == broken.place->rank &&
           (anywhere_on_its_rank || tasks.front().index == broken.place->index);
  };
  const auto& findings = checked.result.diagnostics.kept();
  return std::any_of(findings.begin(), findings.end(), is_expected);
}

}  // namespace capo::testing
