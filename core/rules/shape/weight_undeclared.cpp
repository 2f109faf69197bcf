// Only a chunk that delays its weight gradient has one as an entry of its own.
//
//   delayed none:  [1, -1, -1.5]        the backward of chunk 1 has computed it already
//
// Without a declaration the entries themselves say which chunks delay, and this rule has nothing to
// find. Tested by weight_undeclared_test.cpp and tests/corpus/rules/S17/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void weight_undeclared(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      const bool split = entry.kind == Kind::BackwardWeight || entry.kind == Kind::BackwardInput;
      if (!split || !order.knows(entry.chunk)) continue;
      const Delay delay = order.delay_of(entry.chunk);
      const bool fault =
          delay == Delay::Never || (delay == Delay::Always && entry.kind == Kind::BackwardInput);
      if (!fault || !out.wants_at("S17", entry.span())) continue;
      const std::string part = words::part(context, order, entry.chunk);
      if (delay == Delay::Always) {
        out.keep({.rule = "S17",
                  .message = fmt::format(
                      "{} splits off an input gradient, but every backward of {} is one",
                      words::placed(context, order, at), part),
                  .labels = {{entry.span(), ""}},
                  .help = {.text = "write B, or declare the chunk `mixed`"},
                  .witness = words::entries(context, order, {at})});
        continue;
      }
      out.keep({.rule = "S17",
                .message =
                    fmt::format("{} is {} gradient of {}, which does not delay its weight gradient",
                                words::placed(context, order, at),
                                entry.kind == Kind::BackwardInput ? "an input" : "a weight", part),
                .labels = {{entry.span(), ""}},
                .help = {.text = fmt::format(
                             "remove it, or declare that {} delays its weight gradient", part)},
                .witness = words::entries(context, order, {at})});
    }
  }
}

}  // namespace capo::rules
