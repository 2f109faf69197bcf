// Between two ranks, messages are received in the order in which they are sent.
//
//   0SEND_F0,0SEND_F1 | 1RECV_F1,1RECV_F0     rank 1 takes microbatch 0's output for that of 1
//
// NCCL's messages carry no tag: the k-th send from one rank to another meets the k-th receive
// there, and where the two are of one size nothing ever notices. The first pair that disagrees on a
// channel is reported; those behind it follow from it. Tested by message_mismatch_test.cpp and
// tests/corpus/rules/T08/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <string>

namespace capo::rules {

namespace {

std::string cure_of(const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
  if (!wiring.by_megatron()) {
    return fmt::format("give the sends of rank {} and the receives of rank {} the same order",
                       graph.tasks[fault.other].rank, graph.tasks[fault.task].rank);
  }
  return wiring.environment().p2p == MegatronCalls::Batch
             ? "Megatron makes these calls itself: single calls (--p2p overlap) meet as they should"
             : "Megatron works out what arrives from each rank's own order: all of them have to be "
               "of one schedule that it makes";
}

}  // namespace

void message_mismatch(const Context& context, Diagnostics& out) {
  for_each_fault(
      context, TransferFault::Kind::Mismatch,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.wants("T08")) return;
        out.keep(
            {.rule = "T08",
             .family = Family::Transfers,
             .message = fmt::format("{} meets {}: messages between two ranks meet in the order in "
                                    "which they are issued",
                                    words::task_placed(context, wiring, graph, fault.task),
                                    words::task_name(context, wiring, graph, fault.other)),
             .labels = {{words::task_span(context, wiring, graph, fault.task), ""},
                        {words::task_span(context, wiring, graph, fault.other),
                         "this is sent in its stead"}},
             .notes = {{.text = "where the two are of one size, nothing hangs and nothing is said: "
                                "the wrong tensor is read",
                        .span = std::nullopt}},
             .help = {.text = cure_of(wiring, graph, fault)},
             .witness = witness_of(context, wiring, graph, WitnessKind::Mismatch,
                                   {fault.other, fault.task})});
      });
}

}  // namespace capo::rules
