// Schedules of several ranks, checked in every declared environment: what the properties about
// transfers and about waits have in common.

#pragma once

#include "core/model/environment.h"
#include "core/order/schedule.h"
#include "core/text/order_text.h"
#include "tests/support/check_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace capo::testing {

/// What undeclared transfers may be.
inline std::vector<Environment> environments() {
  std::vector<Environment> all;
  for (const Communicators communicators :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered})
      all.push_back({.communicators = communicators, .transfers = mode});
  }
  return all;
}

/// Those, and what is judged only where it is declared: a communicator for each pass, a parent
/// beside those of pairs, and channels that hold one message or two.
inline std::vector<Environment> declared_environments() {
  std::vector<Environment> all = environments();
  for (const Communicators communicators :
       {Communicators::PerDirection, Communicators::LazyHybrid}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered})
      all.push_back({.communicators = communicators, .transfers = mode});
  }
  for (const Communicators communicators :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge,
        Communicators::PerDirection, Communicators::LazyHybrid}) {
    for (const std::int64_t held : {1, 2}) {
      all.push_back({.communicators = communicators,
                     .transfers = TransferMode::Buffered,
                     .channel_bytes = held,
                     .message_bytes = 1});
    }
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
