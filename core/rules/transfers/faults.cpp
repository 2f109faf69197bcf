#include "core/rules/transfers/faults.h"

#include "core/base/assert.h"
#include "core/rules/judged_before.h"
#include "core/rules/task_words.h"

namespace capo::rules {

Witness witness_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                   WitnessKind kind, std::initializer_list<TaskId> tasks) {
  Witness witness{.kind = kind};
  for (const TaskId task : tasks) {
    witness.tasks.push_back(words::task_reference(context, wiring, graph, task));
  }
  return witness;
}

Action missing_partner(const Wiring& wiring, const Task& transfer) {
  return {.kind = other_end(transfer.kind),
          .chunk = wiring.map().home(wiring.map().neighbour(transfer.kind, transfer.stage)).chunk,
          .microbatch = transfer.microbatch};
}

std::int32_t peer_of(const Wiring& wiring, const Task& task) {
  const std::int32_t stage = wiring.map().neighbour(task.kind, task.stage);
  return stage == kNoStage ? -1 : wiring.map().home(stage).rank;
}

bool is_of_capture(const Context& context, const Wiring& wiring, const TransferFault& fault) {
  using enum TransferFault::Kind;
  CAPO_ASSERT(fault.kind != CollectiveOrder, "it concerns more ranks than two");
  const Task& task = wiring.transfers().graph.tasks[fault.task];
  const bool local = fault.kind == Repeated || fault.kind == Nowhere ||
                     fault.kind == SendTooEarly || fault.kind == ReceiveTooLate;
  if (local) return judged_before(context, wiring, {task.rank});
  return judged_before(context, wiring, {task.rank, peer_of(wiring, task)});
}

}  // namespace capo::rules
