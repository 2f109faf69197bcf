#include "testing/laws/reported.h"

#include <algorithm>

namespace capo::testing {

namespace {

// The part of its witness in which a finding has to name the place.
enum class Within {
  First,      ///< its first entry
  AnyOfWait,  ///< any entry of a circle, which begins nowhere
  Rank,       ///< only the rank is known of a rank's peak and of the first of many races
};

Within place_in(const Diagnostic& finding) {
  if (finding.rule == "B08" || finding.rule == "E02") return Within::Rank;
  const bool circle = finding.rule == "D04" || finding.witness.kind == WitnessKind::WaitCycle;
  return circle ? Within::AnyOfWait : Within::First;
}

bool is_at(const Diagnostic& finding, const Place& place) {
  const auto& tasks = finding.witness.tasks;
  if (tasks.empty()) return false;
  const Within where = place_in(finding);
  if (where == Within::Rank) return tasks.front().rank == place.rank;
  const auto last = where == Within::AnyOfWait ? tasks.end() : tasks.begin() + 1;
  return std::any_of(tasks.begin(), last, [&](const WitnessEntry& task) {
    return Place{.rank = task.rank, .index = task.index} == place;
  });
}

}  // namespace

bool reports(const Checked& verdict, std::string_view rule, const std::optional<Place>& place) {
  const auto& findings = verdict.result.diagnostics.kept();
  return std::any_of(findings.begin(), findings.end(), [&](const Diagnostic& finding) {
    if (finding.rule != rule || finding.severity != Severity::Error) return false;
    return place ? is_at(finding, *place) : finding.witness.tasks.empty();
  });
}

}  // namespace capo::testing
