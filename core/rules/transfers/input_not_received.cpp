// A computation whose input another rank makes receives it.
//
//   0F0 | 1F0               nothing brings the output of stage 0 to rank 1
//
// Where the other rank sends it all the same, send_without_receive reports it. Tested by
// input_not_received_test.cpp and tests/corpus/rules/T05/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void input_not_received(const Context& context, Diagnostics& out) {
  for_each_fault(
      context, TransferFault::Kind::NotReceived,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (fault.other != kNoTask || !out.wants("T05")) return;
        const Task& reader = graph.tasks[fault.task];
        const bool forward = reader.kind == Kind::Forward;
        const std::int32_t maker = wiring.map().neighbour(reader.kind, reader.stage);
        const StageMap::Place& home = wiring.map().home(maker);
        const OrderView& here = context.order_of(wiring, reader.rank);
        const OrderView& there = context.order_of(wiring, home.rank);
        const Action send{.kind = forward ? Kind::SendForward : Kind::SendBackward,
                          .chunk = home.chunk,
                          .microbatch = reader.microbatch};
        const Action receive{.kind = forward ? Kind::ReceiveForward : Kind::ReceiveBackward,
                             .chunk = wiring.map().home(reader.stage).chunk,
                             .microbatch = reader.microbatch};
        out.keep(
            {.rule = "T05",
             .family = Family::Transfers,
             .message = fmt::format(
                 "{} reads {} of stage {}, but there is no `{}`{} and no `{}`{}",
                 words::task_placed(context, wiring, graph, fault.task),
                 forward ? "the output" : "the gradient", maker,
                 words::entry_text(context, there, send), words::on_order(context, there),
                 words::entry_text(context, here, receive), words::on_order(context, here)),
             .labels = {{words::task_span(context, wiring, graph, fault.task), ""}},
             .help = {.text = "add both; an order that writes no transfer at all gets them as "
                              "PyTorch adds them"},
             .witness = witness_of(context, wiring, graph, WitnessKind::Entries, {fault.task})});
      });
}

}  // namespace capo::rules
