// In no beginning of an order has a chunk run more weight gradients than backwards.
//
//   [1, -1.5, -1]           the weight gradient of chunk 1 comes before its backward
//
// TE binds a weight gradient to the newest backward of its chunk, so a wrong place here runs the
// wrong graph or dies on an empty queue. Tested by weight_ahead_test.cpp and
// tests/corpus/rules/S24/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

#include <vector>

namespace capo::rules {

void weight_ahead(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    std::vector<std::int32_t> done(order.tally.size());
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (!order.knows(entry.chunk)) continue;
      const auto chunk = static_cast<std::size_t>(entry.chunk) - 1;
      if (order.delay[chunk] == Delay::Never) continue;  // weight_undeclared's
      if (entry.kind == Kind::Backward) ++done[chunk];
      if (entry.kind != Kind::BackwardWeight) continue;
      const Action needs{
          .kind = Kind::Backward, .chunk = entry.chunk, .microbatch = entry.microbatch};
      const bool together = entry.group != Group::Alone && words::beside(order, at, needs);
      if (entry.microbatch < done[chunk] && !together) continue;
      // One that never gets its backward is a matter of counts.
      if (entry.microbatch >= order.tally[chunk].of(Kind::Backward) || !out.wants("S24")) continue;
      const std::size_t needed = order.find(Kind::Backward, entry.chunk, entry.microbatch);
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
