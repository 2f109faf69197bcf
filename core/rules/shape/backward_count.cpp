// A chunk has as many backwards as forwards.
//
//   [1, 2, -1, -1]          chunk 1 has one forward and two backwards, chunk 2 no backward at all
//
// TE accepts this one in silence: it compares totals, and the surplus backward of chunk 1 takes the
// graph of chunk 2. Tested by backward_count_test.cpp and tests/corpus/rules/S15/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

namespace capo::rules {

namespace {

// One backward written with the number of another chunk: the only surplus of the order and its only
// lack.
struct Slip {
  std::int32_t surplus;
  std::int32_t lacking;
};

std::optional<Slip> single_slip(const Context& context, const OrderView& order) {
  Slip slip{0, 0};
  for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
    const ChunkTally& tally = order.of(chunk);
    if (tally.backwards == tally.forwards) continue;
    if (tally.forwards != context.microbatches()) return std::nullopt;
    std::int32_t& slot = tally.backwards > tally.forwards ? slip.surplus : slip.lacking;
    if (slot != 0 || std::abs(tally.backwards - tally.forwards) != 1) return std::nullopt;
    slot = chunk;
  }
  if (slip.surplus == 0 || slip.lacking == 0) return std::nullopt;
  return slip;
}

Action backward_of(std::int32_t chunk) {
  return {.kind = Kind::Backward, .chunk = chunk, .microbatch = kNoMicrobatch};
}

// The first backward without a forward.
std::size_t surplus_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::Backward, chunk, order.of(chunk).forwards);
}

// The first forward without a backward.
std::size_t lack_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::Forward, chunk, order.of(chunk).backwards);
}

Diagnostic surplus(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::size_t at = surplus_at(order, chunk);
  Diagnostic finding{.rule = "S15"};
  finding.message = fmt::format(
      "{} is a backward of {} without a forward: the chunk has {} and {}",
      words::placed(context, order, at), words::part(context, order, chunk),
      words::count(tally.forwards, "forward"), words::count(tally.backwards, "backward"));
  finding.labels = {{order.entries[at].span(), "no forward is left for it"}};
  finding.witness = words::entries(context, order, {at});
  finding.help.text = "remove it, or add the forward that it belongs to";
  if (context.input().form == Form::TeList && order.knows(chunk + 1)) {
    finding.notes.push_back(
        {fmt::format("TransformerEngine counts totals only: to it this entry is a "
                     "backward of chunk {}",
                     chunk + 1),
         {}});
  }
  return finding;
}

// The surplus and the lack as one finding, since one edit cures both.
Diagnostic slipped(const Context& context, const OrderView& order, const Slip& slip) {
  Diagnostic finding = surplus(context, order, slip.surplus);
  const std::size_t at = surplus_at(order, slip.surplus);
  const std::size_t forward = lack_at(order, slip.lacking);
  const std::string lacking = words::part(context, order, slip.lacking);
  const std::string meant = words::entry_text(context, order, backward_of(slip.lacking));
  finding.labels.push_back(
      {order.entries[forward].span(), fmt::format("{} lacks a backward", lacking)});
  finding.witness = words::entries(context, order, {at, forward});
  finding.help = {.text = fmt::format("{} lacks a backward; is `{}` meant?", lacking, meant),
                  .edits = {words::replace(context, order, at, meant)}};
  return finding;
}

Diagnostic missing(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::string part = words::part(context, order, chunk);
  const std::size_t forward = lack_at(order, chunk);
  Diagnostic finding{.rule = "S15"};
  finding.message =
      tally.backwards == 0
          ? fmt::format("{} has {}{} and no backward", part,
                        words::count(tally.forwards, "forward"), words::on_order(context, order))
          : fmt::format("{} has {} and only {}{}", part, words::count(tally.forwards, "forward"),
                        words::count(tally.backwards, "backward"), words::on_order(context, order));
  finding.labels = {{order.entries[forward].span(), "this forward has no backward"}};
  finding.witness = words::entries(context, order, {forward});
  finding.help.text =
      fmt::format("add `{}` after it", words::entry_text(context, order, backward_of(chunk)));
  return finding;
}

}  // namespace

void backward_count(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    if (const auto slip = single_slip(context, order)) {
      const auto place = [&] { return order.entries[surplus_at(order, slip->surplus)].span(); };
      if (out.wants_at("S15", place)) out.keep(slipped(context, order, *slip));
      continue;
    }
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.backwards == tally.forwards) continue;
      // Where the backwards are the right number it is the forwards that are not.
      if (tally.backwards == context.microbatches()) continue;
      const bool too_many = tally.backwards > tally.forwards;
      const auto place = [&] {
        return order.entries[too_many ? surplus_at(order, chunk) : lack_at(order, chunk)].span();
      };
      if (!out.wants_at("S15", place)) continue;
      out.keep(too_many ? surplus(context, order, chunk) : missing(context, order, chunk));
    }
  }
}

}  // namespace capo::rules
