// Megatron-LM's runtime executes warm-up forwards, then pairs of a forward and a backward, then the
// remaining backwards, on stages that go around the ranks in a loop.
//
//   1 1 -1 -1 1 -1          behind the first pair two backwards, though a forward is left
//
// It works its transfers out from that form, so another order has none. Asked for with --p2p, of
// two ranks or more. Tested by megatron_form_test.cpp and tests/corpus/rules/R01/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/routing/faults.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

namespace capo::rules {

namespace {

constexpr const char* kForm =
    "warm-up forwards, then pairs of a forward and a backward, then the remaining backwards, with "
    "the microbatches of each chunk in ascending order";

bool has_placement(const Context& context, Diagnostics& out) {
  for (const auto& wiring : context.wirings()) {
    if (!is_routed(*wiring) || wiring->megatron_placement()) continue;
    out.add({.rule = "R01",
             .family = Family::Routing,
             .message = "Megatron's transfers need stages that go around the ranks in a loop, with "
                        "as many chunks on every rank",
             .help = {.text = "place the stages in a loop, or leave --p2p out"}});
    return false;
  }
  return true;
}

}  // namespace

void megatron_form(const Context& context, Diagnostics& out) {
  if (!has_placement(context, out)) return;
  for_each_routing_fault(context, [&](const Wiring& wiring, const RoutingFault& fault) {
    const bool waits_always = fault.kind == RoutingFault::Kind::NoOverlap;
    if ((fault.kind != RoutingFault::Kind::Form && !waits_always) || !out.wants("R01")) return;
    const OrderView& order = context.order_of(wiring, fault.rank);
    Diagnostic finding{.rule = "R01", .family = Family::Routing};
    if (waits_always) {
      finding.message = fmt::format(
          "the warm-up{} is that of Megatron's loop without model chunks, which does not overlap",
          words::on_order(context, order));
      finding.help.text = "--p2p batch; the loop with model chunks has twice the warm-up";
      out.keep(std::move(finding));
      return;
    }
    if (fault.entry == kNoEntry) {
      finding.message = fmt::format("Megatron's loop does not run what stands{}",
                                    words::on_order(context, order));
    } else {
      finding.message = fmt::format("{} is not what Megatron's loop runs next",
                                    words::placed(context, order, fault.entry));
      finding.labels = {{order.entries[fault.entry].span(), ""}};
      finding.witness = words::entries(context, order, {fault.entry});
    }
    finding.notes.push_back({.text = fmt::format("it runs {}", kForm), .span = std::nullopt});
    finding.help.text = "`capo generate megatron` prints the orders that it runs";
    out.keep(std::move(finding));
  });
}

}  // namespace capo::rules
