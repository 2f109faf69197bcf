#include "cli/commands/cured.h"

#include "core/input/load.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

namespace capo::cli {

namespace {

// The text with the edits of the first error that has some, if they make it acceptable.
std::optional<std::string> mended(const CheckResult& result, const Input& input,
                                  const JudgeText& judge) {
  const auto& kept = result.diagnostics.kept();
  const auto with_edit = std::find_if(kept.begin(), kept.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error && !finding.help.edits.empty();
  });
  if (result.verdict != Verdict::Rejected || with_edit == kept.end()) return std::nullopt;
  std::string text = edited(input.source.text, with_edit->help.edits);
  const auto after = judge(text);
  if (!after || after->verdict != Verdict::Accepted) return std::nullopt;
  return text;
}

// Text has the slip in place of what follows from it, or that as it stands; programs get all of it.
void add_slip(const CheckRequest& request, Diagnostic slip, CheckResult& result) {
  if (request.format != ReportFormat::Text) {
    result.diagnostics.put_first(std::move(slip));
  } else if (!request.all) {
    replace_by_slip(result, std::move(slip));
  }
}

}  // namespace

JudgeText judge_under(const InputRequest& request, const JudgedInput& judged,
                      const JudgeInput& check) {
  return [&request, &judged, &check](const std::string& text) -> std::optional<CheckResult> {
    InputRequest again = request;
    again.input.file.clear();
    again.input.order = text;
    again.input.form = notation_of(judged.input);
    try {
      const auto edited = judged_input(again, judged.model);
      if (!edited) return std::nullopt;
      return check(*edited);
    } catch (const CLI::ValidationError&) {
      return std::nullopt;  // the declarations do not fit the edited order
    }
  };
}

void try_cures(const InputRequest& request, const JudgedInput& judged, const JudgeInput& check,
               CheckResult& result) {
  const bool two_texts = !request.replay.empty();
  keep_cures_that_work(result, judged.input, judge_under(request, judged, check),
                       two_texts ? CureOptions{.budget = 0} : CureOptions{});
}

std::optional<std::string> cure(const CheckRequest& request, const JudgedInput& judged,
                                CheckResult& result) {
  const JudgeInput planned = [&request](const JudgedInput& edited) {
    return check_planned(edited.input, request.check_options(edited.model));
  };
  try_cures(request, judged, planned, result);
  if (!request.replay.empty()) return std::nullopt;
  const JudgeText judge = judge_under(request, judged, planned);
  if (auto slip = find_slip(result, judged.input, judge)) {
    add_slip(request, std::move(slip->finding), result);
    return std::move(slip->text);
  }
  return mended(result, judged.input, judge);
}

}  // namespace capo::cli
