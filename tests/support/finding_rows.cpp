#include "tests/support/finding_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace capo::testing_support {
namespace {

const char* word_for(WitnessKind kind) {
  switch (kind) {
    case WitnessKind::Entries:
      return "entries";
    case WitnessKind::Path:
      return "path";
    case WitnessKind::WaitCycle:
      return "waitcycle";
    case WitnessKind::Mismatch:
      return "mismatch";
    case WitnessKind::Replay:
      return "replay";
  }
  return "";
}

const char* word_for(Severity severity) {
  return severity == Severity::Error ? "error" : "warning";
}

std::string witness_of(const Diagnostic& finding) {
  std::vector<std::string> entries;
  for (const WitnessEntry& task : finding.witness.tasks) {
    entries.push_back(fmt::format("{}:{} {} {}", task.rank, task.index, task.text, task.action));
  }
  return fmt::format("{} {}: {}", word_for(finding.severity), word_for(finding.witness.kind),
                     fmt::join(entries, ", "));
}

std::string labels_of(const Diagnostic& finding) {
  std::vector<std::string> spans;
  for (const Label& label : finding.labels) {
    spans.push_back(fmt::format("{}+{}{}", label.span.offset, label.span.length, label.text));
  }
  return fmt::format("{}", fmt::join(spans, ", "));
}

std::string found(const Checked& checked, Detail::Kind kind) {
  switch (kind) {
    case Detail::Kind::Message:
      return checked.first().message;
    case Detail::Kind::Witness:
      return witness_of(checked.first());
    case Detail::Kind::Labels:
      return labels_of(checked.first());
    case Detail::Kind::Severity:
      // Whatever is accepted has no error behind its first finding either.
      return checked.accepted() ? "warning" : word_for(checked.first().severity);
    case Detail::Kind::Stuck:
      return checked.result.finishes == false ? "stuck" : "not known to be stuck";
    case Detail::Kind::Reason:
      break;
  }
  return "";
}

void expect_finding(const FindingRow& row) {
  const std::vector<Diagnostic>& kept = row.checked.result.diagnostics.kept();
  EXPECT_EQ(fmt::format("{}", fmt::join(row.checked.findings(), " ")), row.findings);
  EXPECT_EQ(row.checked.accepted(), std::none_of(kept.begin(), kept.end(), [](const auto& each) {
              return each.severity == Severity::Error;
            }));
  for (const Detail& detail : row.details) {
    if (detail.kind == Detail::Kind::Reason) continue;
    ASSERT_FALSE(kept.empty());
    EXPECT_EQ(found(row.checked, detail.kind), detail.text);
  }
}

}  // namespace

Detail because(std::string why) {
  return {Detail::Kind::Reason, std::move(why)};
}
Detail says(std::string message) {
  return {Detail::Kind::Message, std::move(message)};
}
Detail shows(std::string witness) {
  return {Detail::Kind::Witness, std::move(witness)};
}
Detail labels(std::string spans) {
  return {Detail::Kind::Labels, std::move(spans)};
}
Detail warns() {
  return {Detail::Kind::Severity, "warning"};
}
Detail fails() {
  return {Detail::Kind::Severity, "error"};
}
Detail stuck() {
  return {Detail::Kind::Stuck, "stuck"};
}

void expect_findings(const std::vector<FindingRow>& rows) {
  std::string name;
  for (const FindingRow& row : rows) {
    if (!row.name.empty()) name = row.name;
    std::string trace = name + "\n" + row.checked.input.source.text;
    for (const Detail& detail : row.details) {
      if (detail.kind == Detail::Kind::Reason) trace += detail.text + "\n";
    }
    SCOPED_TRACE(trace);
    expect_finding(row);
  }
}

}  // namespace capo::testing_support
