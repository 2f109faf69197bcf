// The rules about the calls that Megatron-LM works out for an order, where --p2p asks for them.
//
//   1 1 -1 -1 1 -1          two backwards follow the first pair, though a forward is left: R01
//
// transfers.cpp judges what the calls do once they are worked out. Tested by routing_test.cpp and
// tests/corpus/rules/R01 and R02.

#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace capo::rules {

namespace {

// Whether the orders as captured, which are judged first, have this fault too. What a rank
// receives depends on the other ranks' orders as well, so its own being the same is not enough.
bool is_of_capture(const Context& context, const Wiring& wiring, const RoutingFault& fault) {
  const Wiring& captured = *context.wirings().front();
  const RankOrder& rank = context.schedule().ranks[RankId(fault.rank).index()];
  if (!wiring.replay() || rank.replay || !captured.by_megatron()) return false;
  const auto& faults = captured.megatron().faults;
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

// Calls visit(wiring, fault) for every fault of routing, that of a capture order once.
template <typename Visit>
void for_each_routing_fault(const Context& context, Visit visit) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->by_megatron() || !wiring->megatron_placement()) continue;
    for (const RoutingFault& fault : wiring->megatron().faults) {
      if (!is_of_capture(context, *wiring, fault)) visit(*wiring, fault);
    }
  }
}

constexpr const char* kForm =
    "warm-up forwards, then pairs of a forward and a backward, then the remaining backwards, with "
    "the microbatches of each chunk in ascending order";

bool has_placement(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->by_megatron() || wiring->megatron_placement()) continue;
    out.add({.message = "Megatron's transfers need stages that go around the ranks in a loop, with "
                        "as many chunks on every rank",
             .help = {.text = "place the stages in a loop, or leave --p2p out; where chunks are "
                              "layers, --model-chunks says how many make a chunk of the model"}});
    return false;
  }
  return true;
}

Diagnostic of_waiting_loop(const Context& context, const OrderView& order) {
  return {.message = fmt::format("the warm-up{} is that of Megatron's loop without model chunks, "
                                 "which does not overlap",
                                 words::on_order(context, order)),
          .help = {.text = "--p2p batch; the loop with model chunks has twice the warm-up"}};
}

Diagnostic of_own_forward(const Context& context, const OrderView& order, std::uint32_t entry) {
  return {.message = fmt::format("{} runs beside the forward whose activations it reads: where "
                                 "exchanges overlap, Megatron runs each forward behind the warm-up "
                                 "together with the backward of its step",
                                 words::placed(context, order, entry)),
          .labels = {{order.entries[entry].span(), ""}},
          .help = {.text = "one more forward in the warm-up, as Megatron has where it overlaps"},
          .witness = words::entries(context, order, {entry})};
}

Diagnostic of_form(const Context& context, const OrderView& order, std::uint32_t entry) {
  Diagnostic finding;
  if (entry == kNoEntry) {
    finding.message =
        fmt::format("Megatron's loop does not run what stands{}", words::on_order(context, order));
  } else {
    finding.message = fmt::format("{} is not what Megatron's loop runs next",
                                  words::placed(context, order, entry));
    finding.labels = {{order.entries[entry].span(), ""}};
    finding.witness = words::entries(context, order, {entry});
  }
  finding.notes.push_back({.text = fmt::format("it runs {}", kForm), .span = std::nullopt});
  finding.help.text = "`capo generate megatron` prints the orders that it runs";
  return finding;
}

// Megatron-LM's runtime executes warm-up forwards, then pairs of a forward and a backward, then the
// remaining backwards, on stages that go around the ranks in a loop.
//
//   1 1 -1 -1 1 -1          behind the first pair two backwards, though a forward is left
//
// If it overlaps the exchanges of experts, no backward of a pair may need the forward beside it.
//
// It works its transfers out from that form, so another order has none. Asked for with --p2p, of
// two ranks or more.
void megatron_form(const Context& context, Findings& out) {
  if (!has_placement(context, out)) return;
  for_each_routing_fault(context, [&](const Wiring& wiring, const RoutingFault& fault) {
    const OrderView& order = context.order_of(wiring, fault.rank);
    switch (fault.kind) {
      case RoutingFault::Kind::NoInput:
      case RoutingFault::Kind::NoReceive:
        return;  // input_not_routed's
      case RoutingFault::Kind::Form:
        if (out.found()) out.report(of_form(context, order, fault.entry));
        return;
      case RoutingFault::Kind::NoOverlap:
        if (out.found()) out.report(of_waiting_loop(context, order));
        return;
      case RoutingFault::Kind::OwnForward:
        if (out.found()) out.report(of_own_forward(context, order, fault.entry));
        return;
    }
  });
}

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

// Megatron-LM posts a receive for every input before the computation that reads it.
//
//   PP 4, group size 2, rank 0:  F of chunk 2 comes before the last rank can have made its input,
//                                and no receive was posted: IndexError in the middle of the step
//
// A rank works out what it receives from its own order and the place of its neighbour in the same
// pattern; an order that looks right on every rank can still ask too late. In flush mode a
// wait without a posted receive is an assertion. The rank stops there, so there is one finding a
// rank at most. Asked for with --p2p, of two ranks or more.
void input_not_routed(const Context& context, Findings& out) {
  for_each_routing_fault(context, [&](const Wiring& wiring, const RoutingFault& fault) {
    const bool late =
        fault.kind == RoutingFault::Kind::NoInput || fault.kind == RoutingFault::Kind::NoReceive;
    if (!late || !out.found()) return;
    const OrderView& order = context.order_of(wiring, fault.rank);
    out.report({.message = message_for(context, order, fault),
                .labels = {{order.entries[fault.entry].span(), ""}},
                .help = {.text = cure_of(order, fault)},
                .witness = words::entries(context, order, {fault.entry})});
  });
}

constexpr Rule kRoutingRules[] = {
    {"R01", "megatron-form", "an order that Megatron's loop does not run", Family::Routing,
     Pass::Routing, megatron_form},
    {"R02", "input-not-routed", "an input that Megatron does not receive in time", Family::Routing,
     Pass::Routing, input_not_routed},
};

}  // namespace

std::span<const Rule> routing_rules() {
  return kRoutingRules;
}

}  // namespace capo::rules
