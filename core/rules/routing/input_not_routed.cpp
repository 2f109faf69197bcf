// Megatron-LM posts a receive for every input before the computation that reads it.
//
//   PP 4, group size 2, rank 0:  F of chunk 2 comes before the last rank can have made its input,
//                                and no receive was posted: IndexError in the middle of the step
//
// What each rank receives it works out from its own order and the place of its neighbour in the
// same pattern; an order that looks right on every rank can still ask too late. In flush mode a
// wait without a posted receive is an assertion. The rank stops there, so there is one finding a
// rank at most. Asked for with --p2p, of two ranks or more. Tested by input_not_routed_test.cpp and
// tests/corpus/rules/R02/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/routing/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <string>

namespace capo::rules {

namespace {

std::string message_for(const Context& context, const OrderView& order, const RoutingFault& fault) {
  const std::string entry = words::placed(context, order, fault.entry);
  if (fault.kind == RoutingFault::Kind::NoReceive) {
    return fmt::format(
        "Megatron waits before {} for a receive that it has not posted: its "
        "assertion \"should have registered recv handle\" fails",
        entry);
  }
  return fmt::format("{} reads an input for which Megatron has posted no receive", entry);
}

const char* cure_of(const OrderView& order, const RoutingFault& fault) {
  // Only a last rank without a warm-up comes to a forward, its first, with nothing posted.
  if (fault.kind == RoutingFault::Kind::NoReceive && order.rank > 0 &&
      order.entries[fault.entry].kind == Kind::Forward) {
    return "with the flush the last rank needs a warm-up: take more than one chunk a rank, or "
           "calls without the flush";
  }
  return "no group of microbatches may be smaller than the number of ranks, the last group "
         "included";
}

}  // namespace

void input_not_routed(const Context& context, Diagnostics& out) {
  for_each_routing_fault(context, [&](const Wiring& wiring, const RoutingFault& fault) {
    const bool late =
        fault.kind == RoutingFault::Kind::NoInput || fault.kind == RoutingFault::Kind::NoReceive;
    if (!late || !out.wants("R02")) return;
    const OrderView& order = context.order_of(wiring, fault.rank);
    out.keep({.rule = "R02",
              .family = Family::Routing,
              .message = message_for(context, order, fault),
              .labels = {{order.entries[fault.entry].span(), ""}},
              .help = {.text = cure_of(order, fault)},
              .witness = words::entries(context, order, {fault.entry})});
  });
}

}  // namespace capo::rules
