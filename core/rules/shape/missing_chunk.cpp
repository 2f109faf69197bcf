// Every chunk from 1 to the last one runs.
//
//   [2, -2]                 there is no chunk 1
//   [1, 1, 3, -3, -1, -1]   there is no chunk 2; TE counts only totals, accepts, and lets the
//   second
//                           forward of chunk 1 (unequal_microbatches) fill chunk 2's graphs
//
// The last chunk is the one that is declared, else the largest that occurs. Tested by
// missing_chunk_test.cpp and tests/corpus/rules/S13/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

void missing_chunk(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (!order.of(chunk).absent() || !out.wants("S13")) continue;
      Diagnostic finding{.rule = "S13"};
      finding.message =
          fmt::format("{} never runs{}: the order {} {}", words::part(context, order, chunk),
                      words::on_order(context, order),
                      order.holder->chunks_declared ? "is declared to have" : "has",
                      words::count(order.holder->chunks, "chunk"));
      const auto last = static_cast<std::size_t>(
          std::max_element(order.entries.begin(), order.entries.end(),
                           [](const Entry& a, const Entry& b) { return a.chunk < b.chunk; }) -
          order.entries.begin());
      if (!order.holder->chunks_declared) {
        finding.labels = {{order.entries[last].span(), "the largest chunk is named here"}};
        finding.witness = words::entries(context, order, {last});
        finding.help.text =
            fmt::format("number the chunks without gaps, or add {} for every microbatch",
                        words::part(context, order, chunk));
      } else {
        finding.help.text = fmt::format(
            "add a forward and a backward of {} for every microbatch, or "
            "declare fewer chunks",
            words::part(context, order, chunk));
      }
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
