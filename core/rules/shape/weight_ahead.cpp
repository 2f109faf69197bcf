// In no beginning of an order has a chunk run more weight gradients than backwards.
//
//   [1, -1.5, -1]           the weight gradient of chunk 1 comes before its backward
//
// TE binds a weight gradient to the newest backward of its chunk, so a wrong place here runs the
// wrong graph or dies on an empty queue. Tested by weight_ahead_test.cpp and
// tests/corpus/rules/S24/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void weight_ahead(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    for (const std::uint32_t at : order.ahead) {
      const Entry& entry = order.entries[at];
      if (entry.kind != Kind::BackwardWeight) continue;
      if (order.delay_of(entry.chunk) == Delay::Never) continue;  // weight_undeclared's
      // One that never gets its backward is a matter of counts.
      if (entry.microbatch >= order.of(entry.chunk).backwards) continue;
      if (!out.wants_at("S24", entry.span())) continue;
      const std::size_t needed = order.find(Kind::Backward, entry.chunk, entry.microbatch);
      const bool together = words::run_together(order, at, needed);
      out.keep(
          {.rule = "S24",
           .message =
               fmt::format("{} is the weight gradient of microbatch {}, whose backward {} {}",
                           words::placed(context, order, at), entry.microbatch,
                           together ? "runs" : "comes only", words::later(order, at, needed)),
           .labels = {{entry.span(), "nothing is queued for it yet"},
                      {order.entries[needed].span(), "its backward is here"}},
           .help = {.text = fmt::format("move it behind {}; the k-th backward of a chunk and the "
                                        "k-th weight gradient belong together",
                                        words::quoted(context, order.entries[needed]))},
           .witness = words::entries(context, order, {at, needed})});
    }
  }
}

}  // namespace capo::rules
