// In no beginning of an order has a chunk run more backwards than forwards.
//
//   [1, -1, -1, 1]          the second backward of chunk 1 comes before its second forward
//
// Counted microbatches are first in, first out, so the k-th backward needs the k-th forward. Where
// microbatches are named this is backward_before_forward's concern. Tested by
// backward_ahead_test.cpp and tests/corpus/rules/S23/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void backward_ahead(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    for (const std::uint32_t at : order.ahead) {
      const Entry& entry = order.entries[at];
      if (entry.kind != Kind::Backward) continue;
      // One that never gets its forward is a matter of counts.
      if (entry.microbatch >= order.of(entry.chunk).forwards) continue;
      if (!out.wants_at("S23", entry.span())) continue;
      const std::size_t needed = order.find(Kind::Forward, entry.chunk, entry.microbatch);
      const bool together = words::run_together(order, at, needed);
      out.keep(
          {.rule = "S23",
           .message =
               fmt::format("{} is the backward of microbatch {}, whose forward {} {}",
                           words::placed(context, order, at), entry.microbatch,
                           together ? "runs" : "comes only", words::later(order, at, needed)),
           .labels = {{entry.span(), "the activations are not there yet"},
                      {order.entries[needed].span(), "its forward is here"}},
           .help = {.text = fmt::format("move it behind {}; the k-th forward of a chunk and the "
                                        "k-th backward belong together",
                                        words::quoted(context, order.entries[needed]))},
           .witness = words::entries(context, order, {at, needed})});
    }
  }
}

}  // namespace capo::rules
