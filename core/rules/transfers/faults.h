// What wiring the transfers found wrong, for the rules that each report one kind of it.

#pragma once

#include "core/rules/context.h"
#include "core/rules/wiring.h"

namespace capo::rules {

/// The rank at the other end of a transfer, or the one that makes what a computation reads; -1 if
/// there is none.
[[nodiscard]] std::int32_t peer_of(const Wiring& wiring, const Task& task);

/// Whether the orders as captured, which are judged first, have the fault too.
[[nodiscard]] bool is_of_capture(const Context& context, const Wiring& wiring,
                                 const TransferFault& fault);

/// Calls visit(wiring, graph, fault) for every fault of `kind`, that of a capture order once.
template <typename Visit>
void for_each_fault(const Context& context, TransferFault::Kind kind, Visit visit) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_matter()) continue;
    const WiredTransfers& wired = wiring->transfers();
    for (const TransferFault& fault : wired.faults) {
      if (fault.kind == kind && !is_of_capture(context, *wiring, fault)) {
        visit(*wiring, wired.graph, fault);
      }
    }
  }
}

/// The entries of tasks, as a witness of `kind`.
[[nodiscard]] Witness witness_of(const Context& context, const Wiring& wiring,
                                 const TaskGraph& graph, WitnessKind kind,
                                 std::initializer_list<TaskId> tasks);

/// The action that would be the other end of a transfer.
[[nodiscard]] Action missing_partner(const Wiring& wiring, const Task& transfer);

}  // namespace capo::rules
