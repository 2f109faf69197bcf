// Schedules of several ranks, checked in every declared environment: what the properties about
// transfers and about waits have in common.

#pragma once

#include "core/model/environment.h"
#include "core/order/schedule.h"
#include "core/text/order_printer.h"
#include "tests/support/check_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace capo::testing {

inline std::vector<Environment> environments() {
  std::vector<Environment> all;
  for (const Communicators communicators :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered})
      all.push_back({.communicators = communicators, .transfers = mode});
  }
  return all;
}

inline testing_support::Checked check_schedule(const Schedule& schedule,
                                               const Environment& environment) {
  return testing_support::check_in({.environment = environment}, print_order_file(schedule),
                                   {.form = TextForm::OrderFile});
}

inline bool reports(const testing_support::Checked& checked, std::string_view rule) {
  const auto& findings = checked.result.diagnostics.kept();
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Diagnostic& finding) { return finding.rule == rule; });
}

}  // namespace capo::testing
