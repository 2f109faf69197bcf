#include <capo/core/draw/draw.h>

#include <capo/core/report/report.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/wiring.h>

#include <fmt/format.h>

namespace capo {

namespace {

Marks marks_of(const TaskGraph& graph, const Execution& execution,
               const std::vector<TransferFault>& faults) {
  Marks marks;
  for (const TransferFault& fault : faults) {
    marks.tasks.push_back(fault.task);
    if (fault.other == kNoTask) continue;
    marks.tasks.push_back(fault.other);
    marks.pairs.emplace_back(fault.other, fault.task);
  }
  marks.cycle = shortest_cycle(graph, execution);
  for (const WaitEdge& wait : marks.cycle) {
    marks.tasks.insert(marks.tasks.end(), {wait.task, wait.waited});
  }
  return marks;
}

// Tasks at which Megatron's runtime stops.
Marks marks_of(const TaskGraph& graph, const Lowered& lowered,
               const std::vector<RoutingFault>& faults) {
  Marks marks;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const Step& step = step_of(lowered, task);
    for (const RoutingFault& fault : faults) {
      if (fault.rank == task.rank && fault.entry == step.entry) marks.tasks.push_back(id);
    }
  }
  return marks;
}

std::string title_of(const CheckResult& result, const Wiring& wiring) {
  std::string title = fmt::format("capo: {}", name_of(result.verdict));
  std::string_view last;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.rule == last) continue;
    last = finding.rule;
    title += fmt::format(", {} {}", finding.rule, find_rule(finding.rule)->name);
  }
  title += fmt::format("\n{}, {} microbatches", name_of(wiring.schedule().topology),
                       result.microbatches);
  if (wiring.map().wired() && wiring.schedule().ranks.size() > 1) {
    const Environment& environment = wiring.environment();
    title += fmt::format(", communicators {}, transfers {}", name_of(environment.layout()),
                         name_of(environment.transfers.value_or(TransferMode::Rendezvous)));
    if (environment.p2p) title += fmt::format(", Megatron's calls ({})", name_of(*environment.p2p));
  }
  return title;
}

}  // namespace

Result<std::string> draw(const Input& input, const CheckOptions& options, const DotOptions& dot) {
  const CheckResult result = check(input, options);
  const Context context(input, options);
  if (!result.orders_clean || context.wirings().empty()) {
    return Error{
        .kind = ErrorKind::Unreadable,
        .message = "the orders have errors of their own, so that there is no graph to draw",
        .help = "`capo check` names them"};
  }
  const Wiring& wiring = *context.wirings().front();
  const std::string title = title_of(result, wiring);
  const bool routed =
      !wiring.by_megatron() || (wiring.megatron_placement() && wiring.megatron().faults.empty());
  if (wiring.executable() && routed && wiring.transfers_matter()) {
    const WiredTransfers& wired = wiring.transfers();
    return to_dot(wired.graph, wiring.lowered(),
                  marks_of(wired.graph, wiring.execution(), wired.faults), title, dot);
  }
  const TaskGraph& graph = wiring.direct();
  const Lowered& lowered = wiring.lowered_for(graph);
  const Marks marks = routed || !wiring.executable()
                          ? marks_of(graph, wiring.direct_execution(), {})
                          : marks_of(graph, lowered, wiring.megatron().faults);
  return to_dot(graph, lowered, marks, title, dot);
}

}  // namespace capo
