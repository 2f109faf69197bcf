// The findings of the rule that runs: a rule reports here, and the driver has said which one it is.
//
//   if (!out.found_at(entry.span())) continue;      it counts; false if nobody wants its words
//   out.report({.message = ..., .labels = ...});    the rule's id and family are filled in
//
// A rule so writes neither its id nor its family into what it says, and words are built only if
// they are kept. Diagnostics holds what comes of it. Tested by check_test.cpp.

#pragma once

#include "core/diag/diagnostics.h"
#include "core/rules/rule.h"

#include <cstddef>
#include <utility>

namespace capo {

class Findings {
 public:
  /// Both outlive the findings.
  Findings(const Rule& rule, Diagnostics& out) : rule_(rule), out_(out) {}

  /// Counts a finding and returns whether it is to be reported in words.
  [[nodiscard]] bool found(Severity severity = Severity::Error) {
    return out_.wants(rule_.id, severity);
  }
  /// Counts a finding at `place`: a span, an optional one, or a function that returns either and is
  /// called only if the finding could be the first.
  template <typename Place>
  [[nodiscard]] bool found_at(Place place, Severity severity = Severity::Error) {
    return out_.wants_at(rule_.id, std::move(place), severity);
  }
  /// Puts a finding that has been counted into words.
  void report(Diagnostic finding) {
    finding.rule = rule_.id;
    finding.family = rule_.family;
    out_.keep(std::move(finding));
  }
  /// Counts and reports a finding that is cheap to describe.
  void add(Diagnostic finding) {
    if (found(finding.severity)) report(std::move(finding));
  }

  /// Whether no further finding of the rule will be reported.
  [[nodiscard]] bool full() const { return out_.full(rule_.id); }
  /// Counts errors that nobody will describe.
  void count_unseen(std::size_t number) { out_.count_unseen(rule_.id, number); }

 private:
  const Rule& rule_;
  Diagnostics& out_;
};

}  // namespace capo
