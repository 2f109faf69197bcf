#include "core/draw/draw.h"

#include "core/report/report.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/rule.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

bool holds(const Wiring& wiring, Span place) {
  const auto& ranks = wiring.schedule().ranks;
  return std::any_of(ranks.begin(), ranks.end(), [&](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [&](const Entry& entry) { return entry.span() == place; });
  });
}

// The orders to draw: those that are replayed, since they are what runs, unless the finding has a
// place that is captured alone and none that is replayed alone.
const Wiring& wiring_of(const Context& context, const Diagnostic* finding) {
  const Wiring& captured = *context.wirings().front();
  const Wiring& replayed = *context.wirings().back();
  if (&captured == &replayed || finding == nullptr) return replayed;
  const auto alone_in = [&](const Wiring& one, const Wiring& other) {
    return std::any_of(finding->labels.begin(), finding->labels.end(), [&](const Label& label) {
      return holds(one, label.span) && !holds(other, label.span);
    });
  };
  const bool of_capture = alone_in(captured, replayed) && !alone_in(replayed, captured);
  return of_capture ? captured : replayed;
}

std::string title_of(const CheckResult& result, const Context& context, const Wiring& wiring) {
  std::string title = fmt::format("capo: {}", name_of(result.verdict));
  std::string_view last;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.rule == last) continue;
    last = finding.rule;
    title += fmt::format(", {} {}", finding.rule, find_rule(finding.rule)->name);
  }
  title += fmt::format("\n{}, {} microbatches", name_of(wiring.schedule().topology),
                       result.microbatches);
  if (replays_otherwise(context.input().schedule)) {
    title += wiring.replay() ? ", as replayed" : ", as captured";
  }
  if (wiring.map().wired() && wiring.schedule().ranks.size() > 1) {
    const Environment& environment = wiring.environment();
    title += fmt::format(", communicators {}, transfers {}", name_of(environment.layout()),
                         transfers_text(environment));
    if (environment.p2p) title += fmt::format(", Megatron's calls ({})", name_of(*environment.p2p));
  }
  return title;
}

std::vector<TaskId> tasks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                             const WitnessEntry& entry) {
  const OrderView& order = context.order_of(wiring, entry.rank);
  const Lowered& lowered = wiring.lowered_for(graph);
  const auto rank = RankId(entry.rank).index();
  std::vector<TaskId> tasks;
  for (TaskId id = graph.first_of[rank]; id < graph.first_of[rank + 1]; ++id) {
    const Step& step = step_of(lowered, graph.tasks[id]);
    if (words::index_of(order, step.entry) != entry.index) continue;
    const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
    if (words::action_name(action) == entry.action) tasks.push_back(id);
  }
  return tasks;
}

// Two waits that make a cycle: the reader waits for what it reads, which its rank lists later and
// which therefore waits for the reader.
std::vector<WaitEdge> against_the_order(TaskId reader, TaskId made, const TaskGraph& graph) {
  std::vector<WaitEdge> cycle{{.task = reader, .kind = EdgeKind::Data, .waited = made}};
  const bool together = graph.start(reader) == graph.start(made);
  if (!together) cycle.push_back({.task = made, .kind = EdgeKind::Stream, .waited = reader});
  return cycle;
}

// The finding's witness in a graph of the wiring: a circle of waits with all that lies between, two
// ends that should not meet, or tasks alone. A witness names entries of orders, a picture has
// tasks. An entry may be several, if its layers are taken apart, and a transfer that was added is
// found by the entry that it was added for.
Marks marks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
               const Diagnostic& finding) {
  Marks marks;
  for (const WitnessEntry& entry : finding.witness.tasks) {
    const auto tasks = tasks_of(context, wiring, graph, entry);
    marks.tasks.insert(marks.tasks.end(), tasks.begin(), tasks.end());
  }
  const bool two = marks.tasks.size() == 2;
  const bool swapped = finding.witness.kind == WitnessKind::Mismatch && two;
  if (swapped) marks.pairs.emplace_back(marks.tasks.front(), marks.tasks.back());
  switch (swapped ? DrawnCycle::None : find_rule(finding.rule)->draws) {
    case DrawnCycle::None:
      break;
    case DrawnCycle::AgainstTheOrder:
      if (two) marks.cycle = against_the_order(marks.tasks.front(), marks.tasks.back(), graph);
      break;
    case DrawnCycle::OfComputations:
      marks.cycle = shortest_cycle(graph, wiring.direct_execution());
      break;
    case DrawnCycle::OfTransfers:
      marks.cycle = shortest_cycle(graph, wiring.execution());
      break;
  }
  for (const WaitEdge& wait : marks.cycle) {
    marks.tasks.insert(marks.tasks.end(), {wait.task, wait.waited});
  }
  return marks;
}

}  // namespace

const TaskGraph& judged_graph(const Wiring& wiring) {
  const bool routed =
      !wiring.by_megatron() || (wiring.megatron_placement() && wiring.megatron().faults.empty());
  return wiring.executable() && routed ? wiring.transfers().graph : wiring.direct();
}

Result<std::string> draw(const Input& input, const CheckOptions& options, const DotOptions& dot) {
  const Context context(input, options);
  const CheckResult result = check(context);
  if (!result.orders_clean || context.wirings().empty()) {
    return Error{
        .kind = ErrorKind::Unreadable,
        .message = "the orders have errors of their own, so that there is no graph to draw",
        .help = "`capo check` names them"};
  }
  const Diagnostic* finding = first_finding(result.diagnostics);
  const Wiring& wiring = wiring_of(context, finding);
  const TaskGraph& graph = judged_graph(wiring);
  const Marks marks = finding == nullptr ? Marks{} : marks_of(context, wiring, graph, *finding);
  return to_dot(graph, wiring.lowered_for(graph), marks, title_of(result, context, wiring), dot);
}

}  // namespace capo
