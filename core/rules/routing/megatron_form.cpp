// Megatron-LM's runtime executes warm-up forwards, then pairs of a forward and a backward, then the
// remaining backwards, on stages that go around the ranks in a loop.
//
//   1 1 -1 -1 1 -1          behind the first pair two backwards, though a forward is left
//
// Where it overlaps the exchanges of experts, no backward of a pair may need the forward beside it.
//
// It works its transfers out from that form, so another order has none. Asked for with --p2p, of
// two ranks or more. Tested by megatron_form_test.cpp and tests/corpus/rules/R01/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/routing/faults.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

constexpr const char* kForm =
    "warm-up forwards, then pairs of a forward and a backward, then the remaining backwards, with "
    "the microbatches of each chunk in ascending order";

bool has_placement(const Context& context, Diagnostics& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->by_megatron() || wiring->megatron_placement()) continue;
    out.add({.rule = "R01",
             .family = Family::Routing,
             .message = "Megatron's transfers need stages that go around the ranks in a loop, with "
                        "as many chunks on every rank",
             .help = {.text = "place the stages in a loop, or leave --p2p out"}});
    return false;
  }
  return true;
}

Diagnostic of_waiting_loop(const Context& context, const OrderView& order) {
  return {.rule = "R01",
          .family = Family::Routing,
          .message = fmt::format("the warm-up{} is that of Megatron's loop without model chunks, "
                                 "which does not overlap",
                                 words::on_order(context, order)),
          .help = {.text = "--p2p batch; the loop with model chunks has twice the warm-up"}};
}

Diagnostic of_own_forward(const Context& context, const OrderView& order, std::uint32_t entry) {
  return {.rule = "R01",
          .family = Family::Routing,
          .message = fmt::format("{} runs beside the forward whose activations it reads: where "
                                 "exchanges overlap, Megatron runs each forward behind the warm-up "
                                 "together with the backward of its step",
                                 words::placed(context, order, entry)),
          .labels = {{order.entries[entry].span(), ""}},
          .help = {.text = "one more forward in the warm-up, as Megatron has where it overlaps"},
          .witness = words::entries(context, order, {entry})};
}

Diagnostic of_form(const Context& context, const OrderView& order, std::uint32_t entry) {
  Diagnostic finding{.rule = "R01", .family = Family::Routing};
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

}  // namespace

void megatron_form(const Context& context, Diagnostics& out) {
  if (!has_placement(context, out)) return;
  for_each_routing_fault(context, [&](const Wiring& wiring, const RoutingFault& fault) {
    const OrderView& order = context.order_of(wiring, fault.rank);
    switch (fault.kind) {
      case RoutingFault::Kind::NoInput:
      case RoutingFault::Kind::NoReceive:
        return;  // input_not_routed's
      case RoutingFault::Kind::Form:
        if (out.wants("R01")) out.keep(of_form(context, order, fault.entry));
        return;
      case RoutingFault::Kind::NoOverlap:
        if (out.wants("R01")) out.keep(of_waiting_loop(context, order));
        return;
      case RoutingFault::Kind::OwnForward:
        if (out.wants("R01")) out.keep(of_own_forward(context, order, fault.entry));
        return;
    }
  });
}

}  // namespace capo::rules
