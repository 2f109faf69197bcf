#include "core/report/report.h"

#include <algorithm>

namespace capo {

Setting setting_of(const Input& input, const CheckResult& result) {
  const Schedule& schedule = input.schedule;
  Setting environment{.topology = name_of(schedule.topology),
                      .ranks = schedule.ranks.size(),
                      .microbatches = result.microbatches};
  for (const RankOrder& rank : schedule.ranks) environment.chunks.push_back(rank.chunks);
  if (!schedule.ranks.empty()) {
    const RankOrder& first = schedule.ranks.front();
    environment.layers = first.layers;
    const std::vector<Delay> delay = resolved_delay(first);
    for (std::size_t c = 0; c < delay.size(); ++c) {
      if (delay[c] != Delay::Never) environment.delayed.push_back(static_cast<std::int32_t>(c) + 1);
    }
    environment.delayed_everywhere =
        environment.delayed.size() > 1 && environment.delayed.size() == delay.size();
    if (environment.delayed_everywhere) environment.delayed.clear();
    if (!first.chunks_declared) environment.assumed.push_back("chunks");
    const bool table = input.form == Form::TorchCompute || input.form == Form::TorchComms;
    if (first.layers.form == Layers::Form::Unstated && !table)
      environment.assumed.push_back("layers_per_chunk");
    if (!first.delay) environment.assumed.push_back("delayed");
  }
  if (!schedule.microbatches) environment.assumed.push_back("microbatches");
  if (schedule.topology == Topology::Independent) environment.assumed.push_back("topology");
  environment.communicates = ranks_communicate(schedule);
  environment.across = result.environment;
  environment.undeclared = result.undeclared;
  environment.groups = result.groups;
  environment.plan = result.plan_declared;
  environment.modules = result.modules;
  if (environment.communicates) {
    if (!environment.across.communicators) environment.assumed.push_back("communicators");
    if (!environment.across.transfers) environment.assumed.push_back("transfers");
  }
  return environment;
}

Report report_of(const Input& input, CheckResult result, std::vector<Opinion> opinions) {
  Setting environment = setting_of(input, result);
  const std::optional<bool> finishes = result.finishes;
  std::optional<PlanResult> plan = std::move(result.plan);
  return {.source = &input.source,
          .verdict = result.verdict,
          .diagnostics = std::move(result.diagnostics),
          .skipped = std::move(result.skipped),
          .environment = std::move(environment),
          .finishes = finishes,
          .plan = std::move(plan),
          .left_unasked = result.left_unasked,
          .opinions = std::move(opinions),
          .notes = input.notes};
}

Report report_of(const Source& source, const Refusal& refusal) {
  Report report;
  report.source = &source;
  report.diagnostics.add(refusal.finding);
  return report;
}

std::size_t suppressed_of(const Report& report, Severity severity) {
  const auto count =
      std::count_if(report.suppressed.begin(), report.suppressed.end(),
                    [=](const Suppressed& of) { return of.finding.severity == severity; });
  return static_cast<std::size_t>(count);
}

std::string_view disagreement(const Report& report, const Opinion& opinion) {
  if (!opinion.accepts || report.verdict == Verdict::NoVerdict) return "";
  const bool sound =
      report.verdict == Verdict::Accepted && suppressed_of(report, Severity::Error) == 0;
  if (*opinion.accepts && !sound) return "accepted there and wrong";
  if (!*opinion.accepts && sound) return "right and refused there";
  return "";
}

}  // namespace capo
