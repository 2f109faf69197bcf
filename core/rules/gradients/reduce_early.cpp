// A chunk's gradients are all there before they are reduced.
//
//   rank 0: F1.0 B1.0 reduce1 W1.0     the reduction reads main_grad, which W1.0 has yet to add to
//
// What counts is W, or B where that is whole, of any microbatch of the chunk. A flag such as
// grad_added_to_main_grad, which TransformerEngine sets at B already, changes nothing about it.
// Lists and tables without reductions are at no fault; a chunk that is never reduced is
// reduce_missing's, one that is reduced twice behind all of its gradients reduce_twice's. One
// finding for each chunk of an order. Tested by reduce_early_test.cpp and
// tests/corpus/rules/G13/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/gradients/reductions.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

Diagnostic early(const Context& context, const OrderView& order, const Reduced& reduced) {
  const Entry& gradient = order.entries[reduced.gradient];
  return {.rule = "G13",
          .family = Family::Gradients,
          .message = fmt::format("{} reduces the gradients of {} before they are complete: {} adds "
                                 "to them {}",
                                 words::placed(context, order, reduced.at),
                                 words::part(context, order, gradient.chunk),
                                 words::quoted(context, gradient),
                                 words::later(order, reduced.at, reduced.gradient)),
          .labels = {{order.entries[reduced.at].span(), "reduces an incomplete gradient"},
                     {gradient.span(), "this part comes too late"}},
          .help = {.text = "put the reduction behind the last weight gradient of the chunk, which "
                           "is its last B where B is whole"},
          .witness = words::entries(context, order, {reduced.at, reduced.gradient})};
}

}  // namespace

void reduce_early(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    for (const Reduced& reduced : reduced_chunks(order)) {
      if (reduced.gradient == order.entries.size() || !out.wants("G13")) continue;
      out.keep(early(context, order, reduced));
    }
  }
}

}  // namespace capo::rules
