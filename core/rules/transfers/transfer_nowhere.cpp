// A transfer goes to another rank that holds the stage at its other end.
//
//   3 stages:  2SEND_F0     stage 2 is the last: nobody reads its output
//
// And it carries a microbatch that the step has. Tested by transfer_nowhere_test.cpp and
// tests/corpus/rules/T02/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/judged_before.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <string>

namespace capo::rules {

namespace {

void report(const Context& context, const Wiring& wiring, const TaskGraph& graph, TaskId task,
            const std::string& reason, Diagnostics& out) {
  if (!out.wants("T02")) return;
  out.keep({.rule = "T02",
            .family = Family::Transfers,
            .message = fmt::format("{} has no other end: {}",
                                   words::task_placed(context, wiring, graph, task), reason),
            .labels = {{words::task_span(context, wiring, graph, task), ""}},
            .help = {.text = "remove it"},
            .witness = witness_of(context, wiring, graph, WitnessKind::Entries, {task})});
}

std::string reason_of(const Wiring& wiring, const Task& task) {
  const std::int32_t peer = peer_of(wiring, task);
  if (peer == task.rank)
    return fmt::format("the stage at its other end is on rank {} as well", peer);
  const bool down = task.kind == Kind::SendBackward || task.kind == Kind::ReceiveForward;
  return fmt::format("stage {} is the {}", task.stage, down ? "first" : "last");
}

// A microbatch that nothing computes; where their number is declared, a rule of shape has said so.
bool is_beyond(const Context& context, const Wiring& wiring, const Task& task) {
  const std::int32_t peer = peer_of(wiring, task);
  return is_transfer(task.kind) && task.microbatch >= context.microbatches() && peer >= 0 &&
         peer != task.rank && !judged_before(context, wiring, {task.rank});
}

}  // namespace

void transfer_nowhere(const Context& context, Diagnostics& out) {
  for_each_fault(context, TransferFault::Kind::Nowhere,
                 [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
                   report(context, wiring, graph, fault.task,
                          reason_of(wiring, graph.tasks[fault.task]), out);
                 });
  const std::string beyond = fmt::format(
      "the step has {} ({})", words::count(context.microbatches(), "microbatch", "microbatches"),
      words::range(context.microbatches()));
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_matter()) continue;
    const TaskGraph& graph = wiring->transfers().graph;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      if (is_beyond(context, *wiring, graph.tasks[id]))
        report(context, *wiring, graph, id, beyond, out);
    }
  }
}

}  // namespace capo::rules
