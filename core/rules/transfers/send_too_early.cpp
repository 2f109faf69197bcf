// A send comes after the computation that makes what it sends.
//
//   0SEND_F0,0F0            there is nothing to send yet
//
// Tested by send_too_early_test.cpp and tests/corpus/rules/T06/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void send_too_early(const Context& context, Diagnostics& out) {
  for_each_fault(context, TransferFault::Kind::SendTooEarly,
                 [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
                   if (!out.wants("T06")) return;
                   const std::string maker = words::task_name(context, wiring, graph, fault.other,
                                                              graph.tasks[fault.other].rank);
                   out.keep({.rule = "T06",
                             .family = Family::Transfers,
                             .message = fmt::format(
                                 "{} comes before {}, which makes what it sends",
                                 words::task_placed(context, wiring, graph, fault.task), maker),
                             .labels = {{words::task_span(context, wiring, graph, fault.task), ""},
                                        {words::task_span(context, wiring, graph, fault.other),
                                         "what it sends is made here"}},
                             .help = {.text = fmt::format("move it behind {}", maker)},
                             .witness = witness_of(context, wiring, graph, WitnessKind::Entries,
                                                   {fault.task, fault.other})});
                 });
}

}  // namespace capo::rules
