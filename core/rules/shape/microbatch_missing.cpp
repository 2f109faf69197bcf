// Where actions name their microbatches, every action of a microbatch does.
//
//   0F0,0F,0B0              PyTorch reads `0F` without a word: a forward of no microbatch
//
// Where the microbatch is missing because PyTorch drops the text behind it (`0FOO`, `2BW0`),
// dropped_text says so. Tested by microbatch_missing_test.cpp and tests/corpus/rules/S07/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <set>

namespace capo::rules {

void microbatch_missing(const Context& context, Diagnostics& out) {
  if (context.counted()) return;
  std::set<std::uint32_t> cut;  // where the cells begin of which PyTorch reads only a part
  for (const CellFault& fault : context.input().cell_faults) {
    if (fault.kind == CellFault::Kind::DroppedText) cut.insert(fault.span.offset);
  }
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (!has_microbatch(entry.kind) || entry.microbatch != kNoMicrobatch) continue;
      if (cut.contains(entry.offset) || !out.wants_at("S07", entry.span())) continue;
      out.keep({.rule = "S07",
                .message = words::placed(context, order, at) + " does not say its microbatch",
                .labels = {{entry.span(), ""}},
                .help = {.text = "add the number of the microbatch, counted from 0"},
                .witness = words::entries(context, order, {at})});
    }
  }
}

}  // namespace capo::rules
