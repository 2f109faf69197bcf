// A chunk's gradients are reduced once.
//
//   rank 0: F1.0 B1.0 reduce1 reduce1     the sum over all replicas is summed over them again
//
// A first reduction that comes too early for a gradient is reduce_early's, with all that follow it.
// One finding for each reduction behind the first. Tested by reduce_twice_test.cpp and
// tests/corpus/rules/G15/.

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/gradients/reductions.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

Diagnostic twice(const Context& context, const OrderView& order, std::size_t first,
                 std::size_t again) {
  return {.rule = "G15",
          .family = Family::Gradients,
          .message = fmt::format("{} reduces the gradients of {} a second time",
                                 words::placed(context, order, again),
                                 words::part(context, order, order.entries[again].chunk)),
          .labels = {{order.entries[again].span(), ""},
                     {order.entries[first].span(), "reduced here already"}},
          .help = {.text = "remove one of the two"},
          .witness = words::entries(context, order, {again, first})};
}

}  // namespace

void reduce_twice(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    const std::vector<Reduced> chunks = reduced_chunks(order);
    if (chunks.empty()) continue;
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (entry.kind != Kind::ReduceGradient) continue;
      CAPO_ASSERT(order.knows(entry.chunk), "orders that name unknown chunks come no further");
      const Reduced& of = chunks[static_cast<std::size_t>(entry.chunk) - 1];
      if (at == of.at || of.gradient != order.entries.size()) continue;
      if (out.wants("G15")) out.keep(twice(context, order, of.at, at));
    }
  }
}

}  // namespace capo::rules
