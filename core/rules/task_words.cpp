#include "core/rules/task_words.h"

#include "core/base/assert.h"
#include "core/rules/words.h"
#include "core/text/action_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace capo::words {

namespace {

struct Origin {
  const OrderView& order;
  std::size_t entry;
  bool written;  // the entry is the task itself, not what a transfer was added for
};

Step step_of(const Wiring& wiring, const TaskGraph& graph, TaskId task) {
  return capo::step_of(wiring.lowered_for(graph), graph.tasks[task]);
}

Origin origin_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                 TaskId task) {
  const OrderView& order = context.order_of(wiring, graph.tasks[task].rank);
  const Step& step = step_of(wiring, graph, task);
  return {
      .order = order, .entry = step.entry, .written = order.entries[step.entry].kind == step.kind};
}

std::string of_rank(const Context& context, const Task& task, std::int32_t seen_from) {
  const bool own = context.schedule().ranks.size() == 1 || task.rank == seen_from;
  return own ? "" : fmt::format(" of rank {}", task.rank);
}

// The word for a task that was added to an order.
std::string_view added_task(const Task& task) {
  if (is_send(task.kind)) return "send";
  if (is_receive(task.kind)) return "receive";
  if (task.kind == Kind::DispatchForward || task.kind == Kind::DispatchBackward) return "dispatch";
  if (is_exchange(task.kind)) return "combine";
  CAPO_ASSERT(task.kind == Kind::BackwardWeight, "nothing else is added");
  return "weight gradient";
}

// "the send of `0F3`", "the receive for `1F3`", "the dispatch of layer 2 of `F1.0`".
std::string added_name(const Context& context, const Origin& origin, const Task& task,
                       const Step& step) {
  const std::string entry = quoted(context, origin.order.entries[origin.entry]);
  const std::string_view what = added_task(task);
  if (is_exchange(task.kind)) {
    // Exchanges are added only if layers were taken apart.
    return fmt::format("the {} of layer {} of {}", what, step.layer + 1, entry);
  }
  return fmt::format("the {} {} {}", what, is_receive(task.kind) ? "for" : "of", entry);
}

std::string why(EdgeKind kind, const std::string& waited) {
  switch (kind) {
    case EdgeKind::Span:  // which nobody asks about: a task does not wait for itself
    case EdgeKind::Stream:
      return fmt::format("comes after {}", waited);
    case EdgeKind::Queue:
      return fmt::format("is queued behind {}", waited);
    case EdgeKind::Issue:
      return fmt::format("is issued after {}", waited);
    case EdgeKind::Data:
      return fmt::format("needs {}", waited);
    case EdgeKind::Message:
      return fmt::format("waits for {}", waited);
    case EdgeKind::Rendezvous:
      return fmt::format("ends only with {}", waited);
    case EdgeKind::Wait:
      return fmt::format("comes behind a wait for {}", waited);
    case EdgeKind::Event:
      return fmt::format("comes after {}", waited);
    case EdgeKind::Collective:
      return fmt::format("ends only with {}", waited);
  }
  CAPO_UNREACHABLE();
}

}  // namespace

std::string task_name(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                      TaskId task) {
  return task_name(context, wiring, graph, task, -1);
}

std::string task_name(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                      TaskId task, std::int32_t seen_from) {
  const Task& of = graph.tasks[task];
  const Origin origin = origin_of(context, wiring, graph, task);
  const std::string entry = origin.written
                                ? quoted(context, origin.order.entries[origin.entry])
                                : added_name(context, origin, of, step_of(wiring, graph, task));
  const std::string which = context.counted() ? fmt::format(" (microbatch {})", of.microbatch) : "";
  return entry + which + of_rank(context, of, seen_from);
}

std::string task_placed(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                        TaskId task) {
  const Origin origin = origin_of(context, wiring, graph, task);
  if (origin.written) return placed(context, origin.order, origin.entry);
  const Task& of = graph.tasks[task];
  return fmt::format("{} at index {}{}",
                     added_name(context, origin, of, step_of(wiring, graph, task)),
                     index_of(origin.order, origin.entry), of_order(context, origin.order));
}

Span task_span(const Context& context, const Wiring& wiring, const TaskGraph& graph, TaskId task) {
  const Origin origin = origin_of(context, wiring, graph, task);
  return origin.order.entries[origin.entry].span();
}

WitnessEntry task_reference(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                            TaskId task) {
  const Origin origin = origin_of(context, wiring, graph, task);
  WitnessEntry result = reference(context, origin.order, origin.entry);
  if (origin.written) return result;
  const Step& step = step_of(wiring, graph, task);
  const Action action{.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch};
  result.text = entry_text(context, origin.order, action);
  result.action = action_name(action);
  return result;
}

Witness task_witness(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                     WitnessKind kind, std::initializer_list<TaskId> tasks) {
  Witness witness{.kind = kind};
  for (const TaskId task : tasks) {
    witness.tasks.push_back(task_reference(context, wiring, graph, task));
  }
  return witness;
}

void describe_waits(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                    std::vector<WaitEdge> cycle, TaskId first, Diagnostic& finding) {
  // All members of a composite stand at the same place if it is one cell of a table.
  const Span place = task_span(context, wiring, graph, first);
  const auto there = std::find_if(cycle.begin(), cycle.end(), [&](const WaitEdge& wait) {
    return graph.start(wait.task) == graph.start(first) &&
           task_span(context, wiring, graph, wait.task) == place;
  });
  if (there != cycle.end()) {
    std::rotate(cycle.begin(), there, cycle.end());
  } else {
    finding.labels.push_back(
        {place, fmt::format("{} is never over", task_name(context, wiring, graph, first))});
  }
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const TaskId task = cycle[i].task;
    const Task& of = graph.tasks[task];
    // A label stands under the entry, which need not be what waits.
    const bool written = origin_of(context, wiring, graph, task).written;
    const std::string subject = written ? "" : fmt::format("its {} ", added_task(of));
    // A wait that is written is the task itself, and not what stands behind it.
    const EdgeKind kind =
        is_wait(of.kind) && cycle[i].kind == EdgeKind::Wait ? EdgeKind::Message : cycle[i].kind;
    finding.labels.push_back(
        {task_span(context, wiring, graph, task),
         fmt::format("{}{}", subject,
                     why(kind, task_name(context, wiring, graph, cycle[i].waited, of.rank)))});
    finding.witness.tasks.push_back(task_reference(context, wiring, graph, task));
  }
}

std::string list_of(const std::vector<std::int32_t>& ranks) {
  constexpr std::size_t kNamed = 8;
  std::string text = "ranks ";
  const std::size_t named = std::min(ranks.size(), kNamed);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

}  // namespace capo::words
