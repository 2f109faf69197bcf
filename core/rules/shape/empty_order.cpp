// Every order runs something forward.
//
//   []                      nothing to capture; TE fails on max() of an empty list
//   [-1.5]                  a weight gradient alone
//
// A list for TE always runs something: TE has no other use for it. Of several ranks, one that is
// declared to hold no chunk may have an order of nothing but idle slots. Says nothing where other
// entries are unreadable: a forward may hide among them. Tested by empty_order_test.cpp and
// tests/corpus/rules/S06/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace capo::rules {

void empty_order(const Context& context, Diagnostics& out) {
  if (!context.input().odd_entries.empty()) return;
  for (const OrderView& order : context.orders()) {
    const bool runs_nothing =
        std::all_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return entry.kind == Kind::Idle; });
    const bool no_chunk = order.holder->chunks_declared && order.holder->chunks == 0;
    if (no_chunk && runs_nothing && context.input().form != Form::TeList) continue;
    const bool forward =
        std::any_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return entry.kind == Kind::Forward; });
    std::optional<Span> place;
    if (!order.entries.empty()) place = order.entries.front().span();
    if (forward || !out.wants_at("S06", place)) continue;
    Diagnostic finding{.rule = "S06"};
    const std::string which = order.replay ? fmt::format("rank {}'s replay order", order.rank)
                                           : "the order" + words::of_rank(context, order);
    finding.message = which + (order.entries.empty() ? " is empty" : " has no forward");
    if (place) finding.labels = {{*place, ""}};
    finding.help.text = context.input().form == Form::TeList
                            ? "the smallest order is one forward and its backward, `[1, -1]`"
                            : "the smallest order is one forward and its backward";
    if (!order.entries.empty()) finding.witness = words::entries(context, order, {0});
    out.keep(std::move(finding));
  }
}

}  // namespace capo::rules
