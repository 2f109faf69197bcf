// What is received is sent.
//
//   0F0 | 1RECV_F0,1F0      nobody sends: the receive waits for ever
//
// Tested by receive_without_send_test.cpp and tests/corpus/rules/T04/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void receive_without_send(const Context& context, Diagnostics& out) {
  for_each_fault(
      context, TransferFault::Kind::ReceiveWithout,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.wants("T04")) return;
        const Task& receive = graph.tasks[fault.task];
        const OrderView& there = context.order_of(wiring, peer_of(wiring, receive));
        const std::string missing =
            words::entry_text(context, there, missing_partner(wiring, receive));
        out.keep(
            {.rule = "T04",
             .family = Family::Transfers,
             .message = fmt::format("{} waits for ever: there is no `{}`{}",
                                    words::task_placed(context, wiring, graph, fault.task), missing,
                                    words::on_order(context, there)),
             .labels = {{words::task_span(context, wiring, graph, fault.task), ""}},
             .help = {.text = fmt::format("add `{}`{}, or remove the receive", missing,
                                          words::on_order(context, there))},
             .witness = witness_of(context, wiring, graph, WitnessKind::Entries, {fault.task})});
      });
}

}  // namespace capo::rules
