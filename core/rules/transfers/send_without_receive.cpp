// What is sent is received.
//
//   0F0,0SEND_F0 | 1F0      nobody receives: the send waits for ever, or the next receive takes it
//
// The computation that reads what is sent is part of the finding, so that the missing receive is
// one finding and not two. Tested by send_without_receive_test.cpp and tests/corpus/rules/T03/.

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

namespace {

// The computation that lacks what the send brings.
TaskId reader_of(const std::vector<TransferFault>& faults, TaskId send) {
  const auto lacks = std::find_if(faults.begin(), faults.end(), [&](const TransferFault& fault) {
    return fault.kind == TransferFault::Kind::NotReceived && fault.other == send;
  });
  CAPO_ASSERT(lacks != faults.end(), "what nobody receives somebody lacks");
  return lacks->task;
}

}  // namespace

void send_without_receive(const Context& context, Diagnostics& out) {
  for_each_fault(
      context, TransferFault::Kind::SendWithout,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.wants("T03")) return;
        const Task& send = graph.tasks[fault.task];
        const OrderView& there = context.order_of(wiring, peer_of(wiring, send));
        const std::string missing =
            words::entry_text(context, there, missing_partner(wiring, send));
        Diagnostic finding{.rule = "T03", .family = Family::Transfers};
        finding.message = fmt::format("{} is never received: there is no `{}`{}",
                                      words::task_placed(context, wiring, graph, fault.task),
                                      missing, words::on_order(context, there));
        finding.labels = {{words::task_span(context, wiring, graph, fault.task), ""}};
        finding.witness = witness_of(context, wiring, graph, WitnessKind::Entries, {fault.task});
        const TaskId reader = reader_of(wiring.transfers().faults, fault.task);
        finding.labels.push_back(
            {words::task_span(context, wiring, graph, reader), "this reads what is sent"});
        finding.help.text = fmt::format("add `{}` before {}", missing,
                                        words::task_placed(context, wiring, graph, reader));
        out.keep(std::move(finding));
      });
}

}  // namespace capo::rules
