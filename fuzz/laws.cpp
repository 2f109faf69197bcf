#include "fuzz/laws.h"

#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/profiles/consult.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "testing/representable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace capo::fuzz {

namespace {

void require_well_formed(const Report& report) {
  require(!to_text(report, Colour::On).empty(), "a report has words");
  for (const JsonLayout layout : {JsonLayout::Indented, JsonLayout::OneLine}) {
    require(nlohmann::json::accept(to_json(report, layout)), "a JSON report is JSON");
  }
  require(nlohmann::json::accept(to_sarif({&report, 1}, "0")), "a SARIF report is JSON");
}

void require_places_inside(const Diagnostic& finding, const Source& source) {
  const auto inside = [&](Span span) {
    return std::size_t{span.offset} + span.length <= source.text.size();
  };
  for (const Label& label : finding.labels) require(inside(label.span), "a label lies in the text");
  for (const Note& note : finding.notes) {
    require(!note.span || inside(*note.span), "a note lies in the text");
  }
  for (const Edit& edit : finding.help.edits)
    require(inside(edit.span), "an edit lies in the text");
}

Input read_back(std::string text, LoadOptions options) {
  options.limits = limits_of_printed();
  auto input = load(Source{.name = "<printed>", .text = std::move(text)}, options);
  if (!input) {
    std::fprintf(stderr, "%s\n", input.error().source.text.c_str());
    std::fprintf(stderr, "%s\n", input.error().refusal.finding.message.c_str());
  }
  require(input.has_value(), "what is printed can be read");
  return std::move(*input);
}

void require_same(const Schedule& schedule, Verdict verdict, const Input& again) {
  require(same_meaning(schedule, again.schedule), "what is read back means the same");
  require(check(again).verdict == verdict, "what is read back has the same verdict");
}

// The two forms that can say every schedule, within what representable.h names.
void require_own_forms(const Input& input, Verdict verdict) {
  if (testing::unrepresentable(input.schedule, small_limits())) return;
  const bool beside = !input.odd_entries.empty() || !input.cell_faults.empty();
  const Input order = read_back(print_order_file(input.schedule), {.form = TextForm::OrderFile});
  // A printed schedule cannot have some findings: entries and cells that are no action, and a row
  // of a table without stages, which is no rank that is declared to have none.
  const bool bare_rank = std::any_of(input.schedule.ranks.begin(), input.schedule.ranks.end(),
                                     [](const RankOrder& rank) { return rank.chunks == 0; });
  if (beside || bare_rank) verdict = check(order).verdict;
  require_same(input.schedule, verdict, order);
  require_same(input.schedule, verdict,
               read_back(print_json(input.schedule), {.form = TextForm::Json}));
}

// A table does not say everything about a schedule; what it says stays as it is from then on.
void require_table(const Schedule& schedule) {
  const auto table = print_torch_csv(schedule);
  const bool blank = table && table->find_first_not_of(" \t\r\n") == std::string::npos;
  // A row of one idle slot is printed as `""`, which the reader takes for a blank line.
  const bool lone_idle =
      std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
        return rank.order.size() == 1 && rank.order.front().kind == Kind::Idle;
      });
  if (!table || blank || lone_idle) return;
  const LoadOptions options{.form = TextForm::TorchCsv, .limits = limits_of_printed()};
  const auto input = load(Source{.name = "<table>", .text = *table}, options);
  if (!input && input.error().refusal.kind == Refusal::Kind::Limit) return;
  require(input.has_value(), "a printed table can be read");
  const auto again = print_torch_csv(input->schedule);
  require(again && *again == *table, "a table printed, read and printed is the same");
}

void require_te_list(const RankOrder& rank) {
  const auto list = to_te_list(rank, rank.order);
  if (!list) return;
  const auto again = read_te_list(print_te_list(*list), limits_of_printed());
  require(again.has_value(), "a printed TE list can be read");
  require(std::equal(again->entries.begin(), again->entries.end(), list->entries.begin(),
                     list->entries.end(),
                     [](const TeEntry& a, const TeEntry& b) {
                       return a.value == b.value && a.type == b.type;
                     }),
          "a TE list printed and read is the same");
  require(from_te_list(*again, {}).odd_entries.empty(), "a rank's list has no odd entries");
}

}  // namespace

void require(bool law, const char* words) {
  if (law) return;
  std::fprintf(stderr, "law broken: %s\n", words);
  std::abort();
}

Limits small_limits() {
  return {.bytes = 1 << 14, .entries = 2'000, .ranks = 20, .counts = 1'000, .depth = 12};
}

Limits limits_of_printed() {
  Limits limits = small_limits();
  limits.bytes = 1 << 24;
  return limits;
}

void require_refused(const Source& source, const Refusal& refusal) {
  require(!refusal.finding.message.empty(), "a refusal has a reason");
  require_places_inside(refusal.finding, source);
  require_well_formed(report_of(source, refusal));
}

void examine(std::string text, LoadOptions options, te::Options te) {
  options.limits = small_limits();
  te.max_graphs = 10'000;
  const auto input = load(Source{.name = "<fuzz>", .text = std::move(text)}, options);
  if (!input) {
    require_refused(input.error().source, input.error().refusal);
    return;
  }
  CheckResult result = check(*input, {.findings_per_rule = 3});
  const Verdict verdict = result.verdict;
  require(verdict == (result.diagnostics.errors() == 0 ? Verdict::Accepted : Verdict::Rejected),
          "an input is rejected exactly where there are errors");
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    require_places_inside(finding, input->source);
  }
  const ConsultOptions consult{.te = te};
  require_well_formed(report_of(
      *input, std::move(result),
      {consult_te(*input, consult), consult_mcore(*input, consult), consult_torch(*input)}));
  require_own_forms(*input, verdict);
  require_table(input->schedule);
  for (const RankOrder& rank : input->schedule.ranks) require_te_list(rank);
}

}  // namespace capo::fuzz
