// A receive comes before the computation that reads what it receives.
//
//   1F0,1RECV_F0            the forward has nothing to read
//
// Tested by receive_too_late_test.cpp and tests/corpus/rules/T07/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void receive_too_late(const Context& context, Diagnostics& out) {
  for_each_fault(context, TransferFault::Kind::ReceiveTooLate,
                 [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
                   if (!out.wants("T07")) return;
                   const std::string reader = words::task_name(context, wiring, graph, fault.other,
                                                               graph.tasks[fault.other].rank);
                   out.keep({.rule = "T07",
                             .family = Family::Transfers,
                             .message = fmt::format(
                                 "{} comes behind {}, which reads what it receives",
                                 words::task_placed(context, wiring, graph, fault.task), reader),
                             .labels = {{words::task_span(context, wiring, graph, fault.task), ""},
                                        {words::task_span(context, wiring, graph, fault.other),
                                         "what it receives is read here"}},
                             .help = {.text = fmt::format("move it before {}", reader)},
                             .witness = witness_of(context, wiring, graph, WitnessKind::Entries,
                                                   {fault.task, fault.other})});
                 });
}

}  // namespace capo::rules
