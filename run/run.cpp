#include "run/run.h"

#include "run/refusal.h"
#include "run/replays.h"

#include <optional>
#include <string>
#include <utility>

namespace capo::run {

namespace {

RunFailure refused(std::string why) {
  return {.kind = RunFailure::Kind::Refused, .message = std::move(why)};
}

// How a run broke off; nullopt if it did not.
std::optional<RunFailure> failure_of(const RunSetup& setup,
                                     const std::optional<std::string>& lost) {
  if (lost) return RunFailure{.kind = RunFailure::Kind::Lost, .message = *lost};
  // A transport ends what hangs in a device, and knows why.
  const auto& error = setup.transport->error() ? setup.transport->error() : setup.engine.error();
  if (!error) return std::nullopt;
  return RunFailure{
      .kind = RunFailure::Kind::Broken, .message = error->message, .help = error->help};
}

Result<RunReport, RunFailure> run_step(Engine& engine, const PlannedStep& step,
                                       const RunOptions& options, Admission admission) {
  auto layers = StepLayers::of(step);
  if (!layers) return refused(layers.error());
  if (auto why = refusal(step, *layers, options)) return refused(std::move(*why));
  RunSetup setup(engine, step, options, admission, *std::move(layers));
  if (auto why = refusal_of_crossings(step, setup.layers, setup.program))
    return refused(std::move(*why));
  if (auto why = refusal_of_experts(step, setup.layers, setup.program, options))
    return refused(std::move(*why));
  if (auto failed = failure_of(setup, std::nullopt)) return *std::move(failed);
  RunReport report;
  report.unchecked = admission == Admission::Unchecked;
  report.engine = engine.name();
  report.device = engine.device();
  if (options.processes != nullptr) {
    report.processes = options.processes->size();
    report.between = options.between.name;
    report.division = division_of(step, options);
  }
  report.replays = options.replays;
  report.float64_compared = options.float64 != Float64::LeftOut;
  report.float64_replays = float64_steps(options);
  RunLoop loop(setup, options, report);
  options.replays == 0 ? loop.run_eagerly_only() : loop.run_replays();
  if (auto failed = failure_of(setup, loop.lost())) return *std::move(failed);
  if (loop.silent()) {
    return RunFailure{.kind = RunFailure::Kind::Broken, .message = *loop.silent()};
  }
  report.program = std::move(setup.program);
  return report;
}

}  // namespace

Result<RunReport, RunFailure> run(Engine& engine, const VerifiedPlan& plan,
                                  const RunOptions& options) {
  return run_step(engine, plan.step(), options, Admission::Verified);
}

Result<RunReport, RunFailure> run_unchecked(Engine& engine, const UncheckedPlan& plan,
                                            const RunOptions& options) {
  return run_step(engine, plan.step(), options, Admission::Unchecked);
}

}  // namespace capo::run
