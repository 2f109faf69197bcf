// The words of `capo run`, as text or JSON. Findings of an order that was not run have the cures
// that were tried, as those of `capo check` have.

#include "cli/commands/cured.h"
#include "cli/commands/run_request.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/timeline/picture.h"
#include "run/processes/walk_all.h"
#include "run/setup/complete_model.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace capo::cli {

namespace {

std::string report_with_cures(const JudgedInput& judged, CheckResult result,
                              const RunRequest& request) {
  const JudgeInput complete = [](const JudgedInput& edited) {
    const auto options = run::complete_model(edited.check_options(), edited.input.schedule).options;
    return check(edited.input, options);
  };
  try_cures(request, judged, complete, result);
  return to_text(report_of(judged.input, std::move(result), {}));
}

// Ranks that are processes walk the order, unless one process has several.
std::string walked_state(const Input& input, const CheckOptions& options, const RunRequest& request,
                         run::Engine& engine) {
  run::Processes* const processes = request.options.processes;
  const bool apart = processes != nullptr && request.transport.ranks_per_device == 1;
  if (!apart) return run::stuck_state(input, options);
  if (request.transport.kind == TransportKind::Mpi) {
    return run::stuck_state(input, options, processes);
  }
  return run::stuck_state(input, options, processes, walk_over_nccl(engine, *processes));
}

// Ends the processes of a run that broke off in one of them.
[[noreturn]] void end_launched(const run::RunFailure& failure, const RunRequest& request,
                               const PlannedStep& step, std::string_view engine, int code) {
  Launched& launched = *request.launched;
  if (launched.reports() && request.format == TextOrJson::Json) {
    (void)write_stdout(run::json_refusal(name_of(step.result().verdict), engine,
                                         {.reason = failure.message, .help = failure.help},
                                         nullptr));
    launched.end_all("", code);
  }
  if (failure.message.empty()) launched.end_all("", code);  // rank 0 has the reason, and tells it
  std::string text = fmt::format("error: the run of {} broke off: {}\n", step.input().source.name,
                                 failure.message);
  if (!failure.help.empty()) text += fmt::format("  help: {}\n", failure.help);
  launched.end_all(text, code);
}

// The last replay as a picture, which `capo draw` reads again.
Picture measured_picture(const run::RunReport& report, const PlannedStep& step) {
  const std::string_view equal = report.bit_equal ? "every gradient is equal to eager execution"
                                                  : "gradients differ from eager execution";
  return {.timeline = run::timeline_of(report, step.input().schedule),
          .title = step.input().source.name,
          .verdict = std::string(name_of(step.result().verdict)),
          .accepted = step.result().verdict == Verdict::Accepted,
          .setting = {fmt::format("measured: {} engine, {}", report.engine, report.device),
                      std::string(equal)}};
}

}  // namespace

int tell_why_not(const RunRequest& request, std::string_view engine, std::string_view verdict,
                 const std::string& name, const std::string& reason, const CheckResult* result,
                 int code) {
  if (request.format == TextOrJson::Json) {
    const auto failed =
        write_stdout(run::json_refusal(verdict, engine, {.reason = reason}, result));
    return failed ? fail(*failed) : code;
  }
  print_stderr(fmt::format("error: {} was not run: {}\n", name, reason));
  return code;
}

int refuse_unverified(const JudgedInput& judged, const NotVerified& why, const RunRequest& request,
                      const CheckOptions& options, run::Engine& engine) {
  const Input& input = judged.input;
  const bool accepted = why.result.verdict == Verdict::Accepted;
  if (request.format == TextOrJson::Text) {
    if (!accepted) print_stderr(report_with_cures(judged, why.result, request));
    if (request.unchecked) print_stderr(walked_state(input, options, request, engine));
  }
  const bool by_verdict = !request.unchecked && !accepted;
  const int code = why.result.verdict == Verdict::NoVerdict ? kNoVerdict : kFindings;
  const int told =
      tell_why_not(request, engine.name(), name_of(why.result.verdict), input.source.name,
                   by_verdict ? run::reason_of(why.result) : why.reason, &why.result, code);
  if (by_verdict && request.format == TextOrJson::Text && can_be_admitted(why.result)) {
    print_stderr("  help: --unchecked runs it all the same, and shows who is hurt\n");
  }
  return told;
}

int report_failure(const run::RunFailure& failure, const RunRequest& request,
                   const PlannedStep& step, std::string_view engine) {
  const bool broken = failure.kind == run::RunFailure::Kind::Broken;
  const int code = broken ? kEnvironment : static_cast<int>(kFindings);
  if (request.launched != nullptr && failure.kind != run::RunFailure::Kind::Refused) {
    end_launched(failure, request, step, engine, code);
  }
  if (request.format == TextOrJson::Json) {
    const auto failed =
        write_stdout(run::json_refusal(name_of(step.result().verdict), engine,
                                       {.reason = failure.message, .help = failure.help}, nullptr));
    return failed ? fail(*failed) : code;
  }
  const bool begun = failure.kind != run::RunFailure::Kind::Refused;
  const std::string& name = step.input().source.name;
  print_error({.kind = ErrorKind::Environment,
               .message = begun ? fmt::format("the run of {} broke off: {}", name, failure.message)
                                : fmt::format("{} was not run: {}", name, failure.message),
               .help = failure.help});
  return code;
}

int write_run(const run::RunReport& report, const PlannedStep& step,
              const std::vector<std::string>& assumed, const RunRequest& request) {
  if (!request.timeline.empty()) {
    if (const auto failed =
            write_output(request.timeline, chrome_trace(measured_picture(report, step)))) {
      return fail(*failed);
    }
  }
  const std::string text = request.format == TextOrJson::Json
                               ? run::json_report(report, step)
                               : run::text_report(report, step, assumed);
  if (const auto failed = write_stdout(text)) return fail(*failed);
  const bool accepted = step.result().verdict == Verdict::Accepted;
  return accepted && report.bit_equal && report.within_bounds ? kAccepted : kFindings;
}

}  // namespace capo::cli
