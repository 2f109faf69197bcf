// Microbatches are counted from 0 to one less than the step has.
//
//   4 microbatches:  0F7                PyTorch's validator counts distinct numbers and not which
//
// Tested by microbatch_out_of_range_test.cpp and tests/corpus/rules/S19/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void microbatch_out_of_range(const Context& context, Diagnostics& out) {
  if (context.counted() || !context.schedule().microbatches) return;
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (entry.microbatch < context.microbatches() || !out.wants("S19")) continue;
      out.keep({.rule = "S19",
                .message =
                    fmt::format("{} is an action of microbatch {}, but the step has {} ({})",
                                words::placed(context, order, at), entry.microbatch,
                                words::count(context.microbatches(), "microbatch", "microbatches"),
                                words::range(context.microbatches())),
                .labels = {{entry.span(), ""}},
                .help = {.text = "correct the microbatch, or the number that is declared"},
                .witness = words::entries(context, order, {at})});
    }
  }
}

}  // namespace capo::rules
