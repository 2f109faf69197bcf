#include "python/ran.h"

#include "core/rules/verify.h"
#include "python/not_accepted.h"
#include "run/host/host_engine.h"
#include "run/modules/module.h"
#include "run/report.h"
#include "run/run.h"
#include "run/setup/complete_model.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <variant>

namespace capo::python {

namespace {

[[noreturn]] void refuse_run(const Input& input, const std::string& why) {
  throw std::runtime_error(fmt::format("{} was not run: {}", input.source.name, why));
}

[[noreturn]] void refuse_verdict(const Input& input, const NotVerified& why) {
  if (why.result.verdict == Verdict::Accepted) refuse_run(input, why.reason);
  throw NotAccepted(report_of(input, why.result, {}),
                    fmt::format("{} was not run: {}", input.source.name, why.reason));
}

run::RunOptions options_of(const RunArguments& arguments) {
  const auto sizes = run::size_kind_named(arguments.sizes);
  if (!sizes) throw std::invalid_argument("sizes: there are balanced, zipf and random");
  return {.replays = arguments.replays, .seed = arguments.seed, .sizes = *sizes};
}

template <typename Plan, typename Start>
Ran started(std::variant<Plan, NotVerified> admitted, Start start, const Input& input,
            const run::CompletedModel& model, const RunArguments& arguments) {
  if (const auto* why = std::get_if<NotVerified>(&admitted)) refuse_verdict(input, *why);
  const auto& plan = std::get<Plan>(admitted);
  run::host::HostEngine engine;
  const auto report = start(engine, plan, options_of(arguments));
  if (!report) refuse_run(input, report.error().message);
  return {.accepted = plan.step().result().verdict == Verdict::Accepted,
          .bit_equal = report->bit_equal,
          .within_bounds = report->within_bounds,
          .text = run::text_report(*report, plan.step(), model.assumed),
          .json = run::json_report(*report, plan.step())};
}

}  // namespace

Ran ran(const Input& input, const Declared& declared, const RunArguments& arguments) {
  ModuleTable modules = declared.model.modules;
  if (arguments.fused) run::fuse_gradients(modules);
  const run::CompletedModel model = run::complete_model({.environment = declared.model.environment,
                                                         .groups = declared.model.groups,
                                                         .modules = std::move(modules),
                                                         .plan = declared.model.plan},
                                                        input.schedule);
  for (const Module& module : model.options.modules.list) {
    if (const auto why = run::module_refusal(module)) refuse_run(input, *why);
  }
  if (arguments.unchecked) {
    return started(admit_unchecked(input, model.options), run::run_unchecked, input, model,
                   arguments);
  }
  return started(verify(input, model.options), run::run, input, model, arguments);
}

}  // namespace capo::python
