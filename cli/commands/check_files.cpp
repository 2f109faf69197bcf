// `capo check` prints the report of one file, or those of several.
//
//   capo check a.order b.te --format json      [{..., "input": {"file": "a.order"}}, {...}]
//
// Several files are judged under one set of declarations, which is read once, since a model file
// may come from a pipe. Each has its report, whatever becomes of the others, and the exit code is
// the worst of theirs; a file that cannot be read has no report and is told on standard error.

#include "cli/commands/check_options.h"
#include "cli/commands/cured.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/report/report.h"
#include "core/rules/certificate.h"
#include "core/rules/context.h"
#include "core/rules/given_plan.h"
#include "core/rules/plan_view.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

// A text that was judged, or refused. The report refers to it.
struct Checked {
  std::string file;
  std::unique_ptr<const Input> input;
  std::unique_ptr<const RefusedInput> refused;
  Report report;
  std::optional<std::string> mended;  // the order that one edit makes acceptable
  std::optional<std::string> certificate;
  int code = kAccepted;
};

Checked checked(RefusedInput refused) {
  Checked out{.refused = std::make_unique<const RefusedInput>(std::move(refused))};
  out.report = report_of(out.refused->source, out.refused->refusal);
  out.code = exit_code_of(out.refused->refusal.kind);
  return out;
}

// The certificate of an accepted order, or of one whose transfers wait for each other.
std::optional<std::string> certified(const Input& input, const Model& declared,
                                     const CheckOptions& options, const CheckResult& result) {
  if (!declared.plan.kind)
    throw CLI::ValidationError("--plan-out", "needs --plan, whose plan it writes");
  if (replays_otherwise(input.schedule))
    throw CLI::ValidationError("--plan-out", "is for orders that are replayed as captured");
  const Context context(input, options);
  if (result.verdict == Verdict::Accepted && context.plan_view().hazards().empty())
    return certificate_of(context.plan_view());
  return result.verdict == Verdict::Rejected ? deadlock_certificate_of(context) : std::nullopt;
}

// The refusal of a given plan that does not fit the orders.
std::optional<RefusedInput> misfit(const JudgedInput& judged, const CheckRequest& request) {
  if (!request.given || judged.replay_alone) return std::nullopt;
  const CheckOptions options = request.check_options(judged.model);
  auto refusal = misfit_of_given_plan(Context(judged.input, options));
  if (!refusal) return std::nullopt;
  return RefusedInput{.source = request.given->source, .refusal = *std::move(refusal)};
}

// A check that keeps enough findings to find those that are suppressed.
CheckResult found_in(const JudgedInput& judged, const CheckRequest& request,
                     std::span<const Suppression> suppressions) {
  CheckOptions options = request.check_options(judged.model);
  if (!suppressions.empty())
    options.findings_per_rule = std::max(options.findings_per_rule, kMostSuppressed);
  return check_planned(judged.input, options);
}

Checked checked(JudgedInput judged, const CheckRequest& request,
                std::span<const Suppression> suppressions) {
  if (auto refused = misfit(judged, request)) return checked(*std::move(refused));
  Checked out;
  CheckResult result = found_in(judged, request, suppressions);
  out.mended = cure(request, judged, result);
  out.input = std::make_unique<const Input>(std::move(judged.input));
  if (!request.plan_out.empty())
    out.certificate =
        certified(*out.input, judged.model, request.check_options(judged.model), result);
  std::vector<Suppressed> suppressed = suppress(result, *out.input, suppressions);
  result.diagnostics.narrow(request.check_options(judged.model).findings_per_rule);
  std::vector<Opinion> opinions;
  if (!judged.replay_alone) {
    opinions = request.opinions(*out.input, judged.model.modules, judged.model.environment);
  }
  out.code = exit_code_of(result.verdict);
  out.report = report_of(*out.input, std::move(result), std::move(opinions));
  out.report.suppressed = std::move(suppressed);
  return out;
}

// A text that is no order is a finding like others, in the format that was asked for.
Result<Checked> outcome_of(const CommandError& error) {
  if (const auto* failed = std::get_if<Error>(&error)) return *failed;
  return checked(std::get<RefusedInput>(error));
}

Result<Checked> outcome_of(Result<JudgedInput, CommandError> judged, const CheckRequest& request,
                           const std::string& file) {
  if (!judged) return outcome_of(judged.error());
  const auto suppressions =
      request.projects->suppressions_of(judged->input, file, request.input.limits);
  if (!suppressions) return outcome_of(suppressions.error());
  return checked(*std::move(judged), request, *suppressions);
}

Colour colour_of(const CheckRequest& request) {
  const bool into_file = request.output != "-" && request.colour == ColourChoice::Auto;
  return into_file ? Colour::Off : colour_of(request.colour);
}

std::string text_of(const Report& report, const CheckRequest& request) {
  return to_text(report, colour_of(request),
                 request.all ? ShownFindings::All : ShownFindings::Grouped) +
         (request.explain_model ? explain_setting(report) : "");
}

std::string render(const Report& report, const CheckRequest& request) {
  switch (request.format) {
    case ReportFormat::Text:
      return text_of(report, request);
    case ReportFormat::Json:
      return to_json(report, JsonLayout::Indented) + "\n";
    case ReportFormat::Sarif:
      return to_sarif({&report, 1}, CAPO_VERSION);
  }
  CAPO_UNREACHABLE();
}

// "3 files: 2 accepted, 1 rejected".
std::string summary_of(const std::deque<Checked>& all) {
  std::string text = fmt::format("{}: ", counted(static_cast<std::int64_t>(all.size()), "file"));
  const auto count = [&](Verdict verdict) {
    return std::count_if(all.begin(), all.end(),
                         [&](const Checked& each) { return each.report.verdict == verdict; });
  };
  text +=
      fmt::format("{} accepted, {} rejected", count(Verdict::Accepted), count(Verdict::Rejected));
  const auto none = count(Verdict::NoVerdict);
  if (none > 0) text += fmt::format(", {} without a verdict", none);
  const auto suppressed = std::count_if(all.begin(), all.end(), [](const Checked& each) {
    return suppressed_of(each.report, Severity::Error) > 0;
  });
  if (suppressed > 0) text += fmt::format("; errors are suppressed in {}", suppressed);
  return text + "\n";
}

std::string render_all(const std::deque<Checked>& all, const CheckRequest& request) {
  std::string text;
  switch (request.format) {
    case ReportFormat::Text:
      for (const Checked& each : all) {
        text += fmt::format("{}:\n{}\n", printable(each.file), text_of(each.report, request));
      }
      return text + summary_of(all);
    case ReportFormat::Json:
      for (const Checked& each : all) {
        const std::string file = "\"file\":" + json_quoted(each.file);
        text += (text.empty() ? "[" : ",\n") + to_json(each.report, JsonLayout::Indented, file);
      }
      return (text.empty() ? "[" : text) + "]\n";
    case ReportFormat::Sarif: {
      std::vector<Report> reports;
      for (const Checked& each : all) reports.push_back(each.report);
      return to_sarif(reports, CAPO_VERSION);
    }
  }
  CAPO_UNREACHABLE();
}

int check_one(const CheckRequest& request) {
  const auto outcome = outcome_of(judged_input(request), request, request.input.file);
  if (!outcome) return fail(outcome.error());
  if (outcome->mended && !request.fix.empty()) {
    if (const auto error = write_output(request.fix, *outcome->mended)) return fail(*error);
  }
  if (outcome->certificate) {
    if (const auto error = write_output(request.plan_out, *outcome->certificate))
      return fail(*error);
  } else if (!request.plan_out.empty() && outcome->code == kAccepted) {
    print_stderr(
        fmt::format("note: {} is not written: as the warnings say, the plan's memory may be taken "
                    "over too early, and nothing could show that it is not\n",
                    printable(request.plan_out)));
  }
  return exit_code_after(write_output(request.output, render(outcome->report, request)),
                         outcome->code);
}

int check_given(CheckRequest request) {
  auto source = read_source(request.plan_in, request.input.limits.bytes);
  if (!source) return fail(source.error());
  auto plan = read_given_plan(source->text, request.input.limits);
  if (!plan) return refuse(RefusedInput{.source = *std::move(source), .refusal = plan.error()});
  request.given = std::make_shared<const GivenFile>(
      GivenFile{.source = *std::move(source), .plan = *std::move(plan)});
  return check_one(request);
}

}  // namespace

int check_files(const CheckRequest& request) {
  if (!request.plan_in.empty()) return check_given(request);
  if (request.more.empty()) return check_one(request);
  if (!request.fix.empty()) throw CLI::ValidationError("--fix", "is for one file at a time");
  const auto declared = declared_model(request);
  if (!declared) return refuse(declared.error());
  std::deque<Checked> all;
  int code = kAccepted;
  std::vector<std::string> files{request.input.file};
  files.insert(files.end(), request.more.begin(), request.more.end());
  for (const std::string& file : files) {
    InputRequest one = request;
    one.input.file = file;
    auto outcome = outcome_of(judged_input(one, *declared), request, file);
    if (!outcome) {
      code = std::max(code, fail(outcome.error()));
      continue;
    }
    code = std::max(code, outcome->code);
    all.push_back(*std::move(outcome));
    all.back().file = file;
  }
  return exit_code_after(write_output(request.output, render_all(all, request)), code);
}

}  // namespace capo::cli
