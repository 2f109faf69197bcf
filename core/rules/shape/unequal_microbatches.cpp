// Every chunk runs every microbatch of the step forward, once.
//
//   [1, 1, 2, -2, -1, -1]   chunk 1 has two microbatches, chunk 2 one
//
// How many there are is declared, or is what most chunks have. TE checks the total only. Chunks
// that never occur are missing_chunk's. Where microbatches are named this is missing_action's and
// repeated_action's concern. Tested by unequal_microbatches_test.cpp and tests/corpus/rules/S14/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

namespace capo::rules {

namespace {

// The first forward too many; where they are too few the last one, or what there is in its stead.
std::size_t position(const OrderView& order, std::int32_t chunk, std::int32_t expected) {
  const std::int32_t forwards = order.of(chunk).forwards;
  if (forwards > expected) return order.find(Kind::Forward, chunk, expected);
  if (forwards > 0) return order.find_last(Kind::Forward, chunk);
  return order.find(Kind::Backward, chunk, 0);
}

std::optional<Span> place_of(const OrderView& order, std::size_t at) {
  if (at == order.entries.size()) return std::nullopt;
  return order.entries[at].span();
}

}  // namespace

void unequal_microbatches(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  const std::int32_t expected = context.microbatches();
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.absent() || tally.forwards == expected) continue;
      const bool surplus = tally.forwards > expected;
      if (!out.wants_at("S14", [&] { return place_of(order, position(order, chunk, expected)); }))
        continue;
      const std::size_t at = position(order, chunk, expected);
      const std::string part = words::part(context, order, chunk);
      Diagnostic finding{.rule = "S14"};
      finding.message = fmt::format(
          "{} has {}{}, but {} {}", part, words::count(tally.forwards, "forward"),
          words::on_order(context, order),
          context.schedule().microbatches ? "the step is declared to have"
                                          : "the other chunks have",
          context.schedule().microbatches ? words::count(expected, "microbatch", "microbatches")
                                          : std::to_string(expected));
      if (at < order.entries.size()) {
        finding.labels = {{order.entries[at].span(), surplus ? "one too many from here" : ""}};
        finding.witness = words::entries(context, order, {at});
      }
      if (surplus && context.input().form == Form::TeList && order.knows(chunk + 1)) {
        finding.notes.push_back(
            {fmt::format("TransformerEngine counts totals only: to it this entry is a "
                         "forward of chunk {}",
                         chunk + 1),
             {}});
      }
      const std::int32_t difference = std::abs(tally.forwards - expected);
      finding.help.text =
          fmt::format("{} {} of {}: every chunk runs every microbatch once",
                      surplus ? "remove" : "add", words::count(difference, "forward"), part);
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
