// A chunk leaves all of its weight gradients to W, or none: its modules are made to delay them or
// not, once and for every graph.
//
//   rank 0: F1.0 F1.1 I1.0 W1.0 B1.1     modules that delay leave B1.1's gradient in their queue;
//                                        of those that do not, there is nothing for W1.0 to capture
//
// Either way TransformerEngine ends in an error at capture, and no TE list can say such an order.
// Capo's own plan takes each backward apart for itself, so this is about plan te alone; whoever
// declares no plan may have an order of PyTorch's, where it is usual.
//
// One finding for each chunk of an order, at the entry that is at odds with the ones before. Tested
// by half_delayed_test.cpp and tests/corpus/rules/C08/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

namespace {

Diagnostic at_odds(const Context& context, const OrderView& order, std::int32_t chunk) {
  const std::size_t whole = order.find(Kind::Backward, chunk, 0);
  const std::size_t half = order.find(Kind::BackwardInput, chunk, 0);
  const bool whole_is_later = whole > half;
  const Label is_whole{order.entries[whole].span(), "whole"};
  const Label is_half{order.entries[half].span(), "the input half"};
  return {
      .rule = "C08",
      .family = Family::Capture,
      .message = fmt::format(
          "{} {}, and {} before it {}: TransformerEngine captures the modules of a chunk with "
          "delay_wgrad_compute or without",
          words::placed(context, order, std::max(whole, half)),
          whole_is_later ? "is a whole backward" : "leaves its weight gradient to W",
          words::quoted(context, order.entries[std::min(whole, half)]),
          whole_is_later ? "leaves its weight gradient to W" : "is a whole one"),
      .labels = whole_is_later ? std::vector{is_whole, is_half} : std::vector{is_half, is_whole},
      .help = {.text = "split every backward of the chunk or none of them; `--plan safe` takes "
                       "each as it is"},
      .witness = words::entries(context, order, {std::min(whole, half), std::max(whole, half)})};
}

}  // namespace

void half_delayed(const Context& context, Diagnostics& out) {
  if (context.options().plan.kind != PlanKind::Te) return;
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;  // what is replayed has been captured
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.inputs == 0 || tally.backwards == 0 || !out.wants("C08")) continue;
      out.keep(at_odds(context, order, chunk));
    }
  }
}

}  // namespace capo::rules
