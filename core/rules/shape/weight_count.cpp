// A chunk that delays its weight gradient has one for every backward.
//
//   [1, 1, -1, -1.5, -1]    the second backward of chunk 1 has no weight gradient
//
// Tested by weight_count_test.cpp and tests/corpus/rules/S16/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

// The first weight gradient without a backward.
std::size_t surplus_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::BackwardWeight, chunk, order.of(chunk).backwards);
}

// The first backward without a weight gradient.
std::size_t lack_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::Backward, chunk, order.of(chunk).weights);
}

Diagnostic surplus(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::size_t at = surplus_at(order, chunk);
  return {.rule = "S16",
          .message = fmt::format(
              "{} is a weight gradient of {} without a backward: the chunk has {} and {}",
              words::placed(context, order, at), words::part(context, order, chunk),
              words::count(tally.backwards, "backward"),
              words::count(tally.weights, "weight gradient")),
          .labels = {{order.entries[at].span(), "no backward is left for it"}},
          .help = {.text = "remove it, or add the backward that it belongs to"},
          .witness = words::entries(context, order, {at})};
}

Diagnostic missing(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::string part = words::part(context, order, chunk);
  const std::size_t backward = lack_at(order, chunk);
  const Action weight{.kind = Kind::BackwardWeight,
                      .chunk = chunk,
                      .microbatch = order.entries[backward].microbatch};
  return {
      .rule = "S16",
      .message = tally.weights == 0 ? fmt::format("{} delays its weight gradient and has none{}",
                                                  part, words::on_order(context, order))
                                    : fmt::format("{} has {} and only {}{}", part,
                                                  words::count(tally.backwards, "backward"),
                                                  words::count(tally.weights, "weight gradient"),
                                                  words::on_order(context, order)),
      .labels = {{order.entries[backward].span(), "this backward has no weight gradient"}},
      .help = {.text = fmt::format("add `{}` after it", words::entry_text(context, order, weight)),
               .edits = words::insert_after(context, order, backward, weight)},
      .witness = words::entries(context, order, {backward})};
}

}  // namespace

void weight_count(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (order.delay_of(chunk) != Delay::Always || tally.weights == tally.backwards) continue;
      // Where the weight gradients are the right number it is the backwards that are not.
      if (tally.weights == tally.forwards) continue;
      const bool too_many = tally.weights > tally.backwards;
      const auto place = [&] {
        return order.entries[too_many ? surplus_at(order, chunk) : lack_at(order, chunk)].span();
      };
      if (!out.wants_at("S16", place)) continue;
      out.keep(too_many ? surplus(context, order, chunk) : missing(context, order, chunk));
    }
  }
}

}  // namespace capo::rules
