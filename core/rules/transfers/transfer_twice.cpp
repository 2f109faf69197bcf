// A transfer happens once.
//
//   1RECV_F0,1F0,1RECV_F0   the second receive waits for a send that never comes, or, worse, takes
//                           the next message; PyTorch's simulator accepts it
//
// Tested by transfer_twice_test.cpp and tests/corpus/rules/T01/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/task_words.h"
#include "core/rules/transfers/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void transfer_twice(const Context& context, Diagnostics& out) {
  for_each_fault(
      context, TransferFault::Kind::Repeated,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.wants("T01")) return;
        out.keep({.rule = "T01",
                  .family = Family::Transfers,
                  .message = fmt::format("{} is the same transfer a second time",
                                         words::task_placed(context, wiring, graph, fault.task)),
                  .labels = {{words::task_span(context, wiring, graph, fault.task), "again"},
                             {words::task_span(context, wiring, graph, fault.other),
                              "it is done here already"}},
                  .help = {.text = "remove one of the two; is another microbatch meant?"},
                  .witness = witness_of(context, wiring, graph, WitnessKind::Entries,
                                        {fault.other, fault.task})});
      });
}

}  // namespace capo::rules
