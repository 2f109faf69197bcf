// Every chunk from 1 to the last one runs.
//
//   [2, -2]                 there is no chunk 1
//   [1, 1, 3, -3, -1, -1]   there is no chunk 2; TE counts only totals, accepts, and lets the
//   second
//                           forward of chunk 1 (unequal_microbatches) fill chunk 2's graphs
//
// The last chunk is the one that is declared, else the largest that occurs. Tested by
// missing_chunk_test.cpp and tests/corpus/rules/S13/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace capo::rules {

namespace {

// The first entry of the largest chunk, which says how many there are where nothing is declared.
// Larger ones that are unknown say nothing.
const Entry* largest_named(const OrderView& order) {
  if (order.holder->chunks_declared || order.replay) return nullptr;
  const auto found =
      std::find_if(order.entries.begin(), order.entries.end(),
                   [&](const Entry& entry) { return entry.chunk == order.holder->chunks; });
  return found == order.entries.end() ? nullptr : &*found;
}

std::optional<Span> place_of(const Entry* entry) {
  if (entry == nullptr) return std::nullopt;
  return entry->span();
}

}  // namespace

void missing_chunk(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (!order.of(chunk).absent()) continue;
      if (!out.wants_at("S13", [&] { return place_of(largest_named(order)); })) continue;
      const Entry* largest = largest_named(order);
      const std::string part = words::part(context, order, chunk);
      const bool table =
          context.input().form == Form::TorchCompute || context.input().form == Form::TorchComms;
      const std::string parts = words::count(order.holder->chunks, table ? "stage" : "chunk");
      Diagnostic finding{.rule = "S13"};
      finding.message =
          fmt::format("{} never runs{}: the rank {} {}", part, words::on_order(context, order),
                      order.holder->chunks_declared ? "is declared to have" : "has", parts);
      if (largest == nullptr) {
        finding.help.text = fmt::format(
            "add a forward and a backward of {} for every microbatch, or declare "
            "fewer {}",
            part, table ? "stages for the rank" : "chunks");
      } else {
        const auto at = static_cast<std::size_t>(largest - order.entries.data());
        finding.labels = {{largest->span(), "the largest chunk is named here"}};
        finding.witness = words::entries(context, order, {at});
        finding.help.text =
            fmt::format("number the chunks without gaps, or add {} for every microbatch", part);
      }
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
