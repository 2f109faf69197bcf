// A chunk has as many backwards as forwards.
//
//   [1, 2, -1, -1]          chunk 1 has one forward and two backwards, chunk 2 no backward at all
//
// TE accepts this one in silence: it compares totals, and the surplus backward of chunk 1 takes the
// graph of chunk 2. Tested by backward_count_test.cpp and tests/corpus/rules/S15/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

namespace capo::rules {

namespace {

// The only other chunk that lacks a backward: a surplus one is probably a slip of its number.
std::int32_t chunk_that_lacks_one(const OrderView& order) {
  std::int32_t lacking = 0;
  for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
    if (order.of(chunk).backwards >= order.of(chunk).forwards) continue;
    if (lacking != 0) return 0;
    lacking = chunk;
  }
  return lacking;
}

Diagnostic surplus(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::size_t at = order.find(Kind::Backward, chunk, tally.forwards);
  Diagnostic finding{.rule = "S15"};
  finding.message = fmt::format(
      "{} is a backward of {} without a forward: the chunk has {} and {}",
      words::placed(context, order, at), words::part(context, order, chunk),
      words::count(tally.forwards, "forward"), words::count(tally.backwards, "backward"));
  finding.labels = {{order.entries[at].span(), "no forward is left for it"}};
  finding.witness = words::entries(context, order, {at});
  const std::int32_t lacking = chunk_that_lacks_one(order);
  if (lacking == 0) {
    finding.help.text = "remove it, or add the forward that it belongs to";
    return finding;
  }
  const std::string meant = words::entry_text(
      context, order, {.kind = Kind::Backward, .chunk = lacking, .microbatch = kNoMicrobatch});
  finding.help.text = fmt::format("{} lacks a backward; is `{}` meant?",
                                  words::part(context, order, lacking), meant);
  finding.help.edits = {{order.entries[at].span(), meant}};
  if (context.input().form == Form::TeList && order.knows(chunk + 1)) {
    finding.notes.push_back({fmt::format("TransformerEngine counts totals only: to it this entry "
                                         "is a backward of chunk {}",
                                         chunk + 1),
                             {}});
  }
  return finding;
}

Diagnostic missing(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::string part = words::part(context, order, chunk);
  const std::size_t forward = order.find(Kind::Forward, chunk, tally.backwards);
  Diagnostic finding{.rule = "S15"};
  finding.message =
      tally.backwards == 0
          ? fmt::format("{} has {}{} and no backward", part,
                        words::count(tally.forwards, "forward"), words::on_order(context, order))
          : fmt::format("{} has {} and only {}{}", part, words::count(tally.forwards, "forward"),
                        words::count(tally.backwards, "backward"), words::on_order(context, order));
  finding.labels = {{order.entries[forward].span(), "this forward has no backward"}};
  finding.witness = words::entries(context, order, {forward});
  finding.help.text = fmt::format(
      "add `{}` after it",
      words::entry_text(context, order,
                        {.kind = Kind::Backward, .chunk = chunk, .microbatch = kNoMicrobatch}));
  return finding;
}

}  // namespace

void backward_count(const Context& context, Diagnostics& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.backwards == tally.forwards) continue;
      // Where the backwards are the right number it is the forwards that are not.
      if (tally.backwards == context.microbatches()) continue;
      if (!out.wants("S15")) continue;
      out.keep(tally.backwards > tally.forwards ? surplus(context, order, chunk)
                                                : missing(context, order, chunk));
    }
  }
}

}  // namespace capo::rules
