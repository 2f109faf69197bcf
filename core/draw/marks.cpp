#include "core/draw/marks.h"

#include "core/rules/rule.h"
#include "core/rules/words.h"

#include <cstddef>

namespace capo {

namespace {

std::vector<TaskId> tasks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                             const TaskReference& entry) {
  const OrderView& order = context.order_of(wiring, entry.rank);
  const Lowered& lowered = wiring.lowered_for(graph);
  const auto rank = static_cast<std::size_t>(entry.rank);
  std::vector<TaskId> tasks;
  for (TaskId id = graph.first_of[rank]; id < graph.first_of[rank + 1]; ++id) {
    const Step& step = step_of(lowered, graph.tasks[id]);
    if (words::index_of(order, step.entry) != entry.index) continue;
    const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
    if (words::action_name(action) == entry.action) tasks.push_back(id);
  }
  return tasks;
}

// What one rank lists before what it reads: the one waits for the other, and that comes later.
std::vector<WaitEdge> against_the_order(TaskId reader, TaskId made, const TaskGraph& graph) {
  std::vector<WaitEdge> cycle{{.task = reader, .kind = EdgeKind::Data, .waited = made}};
  const bool together = graph.start(reader) == graph.start(made);
  if (!together) cycle.push_back({.task = made, .kind = EdgeKind::Stream, .waited = reader});
  return cycle;
}

}  // namespace

Marks marks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
               const Diagnostic& finding) {
  Marks marks;
  for (const TaskReference& entry : finding.witness.tasks) {
    const auto tasks = tasks_of(context, wiring, graph, entry);
    marks.tasks.insert(marks.tasks.end(), tasks.begin(), tasks.end());
  }
  const bool two = marks.tasks.size() == 2;
  if (finding.witness.kind == WitnessKind::Mismatch && two) {
    marks.pairs.emplace_back(marks.tasks.front(), marks.tasks.back());
    return marks;
  }
  switch (find_rule(finding.rule)->draws) {
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

}  // namespace capo
