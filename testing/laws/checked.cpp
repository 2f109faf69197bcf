#include "testing/laws/checked.h"

#include "core/input/load.h"
#include "core/report/report.h"
#include "core/text/order_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace capo::testing {

namespace {

Checked checked_text(std::string text, const LoadOptions& form, const CheckOptions& options) {
  auto input = load(Source{.name = "<order>", .text = std::move(text)}, form);
  if (!input) {
    Checked refused{.input = {.source = input.error().source}, .result = {}};
    refused.result.diagnostics.add(input.error().refusal.finding);
    return refused;
  }
  Checked checked{.input = std::move(*input), .result = {}};
  checked.result = check(checked.input, options);
  return checked;
}

}  // namespace

std::vector<Diagnostic> Checked::of(Family family) const {
  std::vector<Diagnostic> found;
  const auto is_one = [&](const Diagnostic& finding) { return finding.family == family; };
  const auto& kept = result.diagnostics.kept();
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(found), is_one);
  return found;
}

std::string Checked::findings() const {
  std::vector<std::string> words;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    const auto& tasks = finding.witness.tasks;
    words.push_back(fmt::format("{}@{}", finding.rule,
                                tasks.empty() ? "-" : std::to_string(tasks.front().index)));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string Checked::report() const {
  return to_text(report_of(input, result, {}));
}

Checked checked(const Schedule& schedule, const CheckOptions& options) {
  return checked_text(print_order_file(schedule), {.form = TextForm::OrderFile}, options);
}

Checked checked(const TeOrder& order) {
  return checked_text(order.text(), {.form = TextForm::TeList, .te = order.declarations()}, {});
}

Checked checked(const Table& table, const CheckOptions& options) {
  return checked_text(table.text(), {.form = TextForm::TorchCsv, .torch = table.declarations},
                      options);
}

Checked checked(const Communication& communication) {
  return checked(communication.schedule,
                 {.environment = communication.environment, .groups = communication.groups});
}

Checked checked(const Declared& declared) {
  if (declared.table) return checked(table_of(declared.schedule), declared.options);
  return checked(declared.schedule, declared.options);
}

}  // namespace capo::testing
