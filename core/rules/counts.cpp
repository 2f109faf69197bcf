// The rules about how often a chunk runs what, where microbatches are counted.
//
//   [1, 2, -1, -1]          chunk 1 has two backwards for one forward, chunk 2 has none: S15
//
// An order whose entries name their microbatches is judged by microbatches.cpp; what comes before
// what is for order.cpp. Tested by counts_test.cpp, weight_counts_test.cpp and
// tests/corpus/rules/S12 to S18.

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

namespace capo::rules {

namespace {

std::string declared_chunks(std::int32_t chunks) {
  if (chunks == 0) return "no chunk is";
  return chunks == 1 ? "only chunk 1 is" : fmt::format("only chunks 1 to {} are", chunks);
}

// An entry names a chunk that the rank has.
//
//   layers per chunk [1]:  [1, -2]      chunk 2 is not declared
//   [1, 1000000, -1, -1000000]          chunks 1 to 1000000 cannot all occur in four entries
void unknown_chunk(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (entry.kind == Kind::Idle || order.knows(entry.chunk) || !out.found_at(entry.span()))
        continue;
      Diagnostic finding{.labels = {{entry.span(), ""}},
                         .witness = words::entries(context, order, {at})};
      const std::string where = words::placed(context, order, at);
      if (order.holder->chunks_declared) {
        finding.message = fmt::format("{} names chunk {}, but {} declared", where, entry.chunk,
                                      declared_chunks(order.holder->chunks));
        finding.help.text =
            order.holder->layers.form == Layers::Form::List
                ? "correct the entry, or the number of chunks that is declared with the "
                  "layers per chunk"
                : "correct the entry, or the number of chunks that is declared";
      } else if (order.replay) {
        finding.message =
            fmt::format("{} names a chunk that the capture order does not have", where);
        finding.help.text = "what is replayed must have been captured";
      } else {
        finding.message = fmt::format("{} names a chunk beyond the length of the order", where);
        finding.help.text = "chunks are numbered from 1 without gaps";
      }
      out.report(std::move(finding));
    }
  }
}

// The first entry of the largest chunk, which says how many chunks there are; null if that is
// declared. Larger chunks that are unknown do not count.
const Entry* largest_named(const OrderView& order) {
  if (order.holder->chunks_declared || order.replay) return nullptr;
  const auto found =
      std::find_if(order.entries.begin(), order.entries.end(),
                   [&](const Entry& entry) { return entry.chunk == order.holder->chunks; });
  return found == order.entries.end() ? nullptr : &*found;
}

std::optional<Span> place_of_entry(const Entry* entry) {
  if (entry == nullptr) return std::nullopt;
  return entry->span();
}

// Every chunk from 1 to the last one runs.
//
//   [2, -2]                 there is no chunk 1
//   [1, 1, 3, -3, -1, -1]   there is no chunk 2; TE counts only totals, accepts, and lets the
//                           second forward of chunk 1 (unequal_microbatches) fill its graphs
//
// The last chunk is the one that is declared, else the largest that occurs.
void missing_chunk(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (!order.of(chunk).absent()) continue;
      if (!out.found_at([&] { return place_of_entry(largest_named(order)); })) continue;
      const Entry* largest = largest_named(order);
      const std::string part = words::part(context, order, chunk);
      const bool table =
          context.input().form == Form::TorchCompute || context.input().form == Form::TorchComms;
      const std::string parts = counted(order.holder->chunks, table ? "stage" : "chunk");
      Diagnostic finding;
      finding.message =
          fmt::format("{} never runs{}: the rank {} {}", part, words::on_order(context, order),
                      order.holder->chunks_declared ? "is declared to have" : "has", parts);
      if (largest == nullptr) {
        finding.help.text = fmt::format(
            "add a forward and a backward of {} for every microbatch, or declare "
            "fewer {}",
            part, table ? "stages for the rank" : "chunks");
      } else {
        const auto at = as_index(largest - order.entries.data());
        finding.labels = {{largest->span(), "the largest chunk is named here"}};
        finding.witness = words::entries(context, order, {at});
        finding.help.text =
            fmt::format("number the chunks without gaps, or add {} for every microbatch", part);
      }
      out.report(std::move(finding));
    }
  }
}

// The first forward too many; the last forward if they are too few, or the first backward if there
// is no forward at all.
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

// Every chunk runs every microbatch of the step forward, once.
//
//   [1, 1, 2, -2, -1, -1]   chunk 1 has two microbatches, chunk 2 one
//
// Their number is declared, or is what most chunks have. TE checks the total only. Chunks that
// never occur are missing_chunk's. If microbatches are named this is missing_action's and
// repeated_action's concern.
void unequal_microbatches(const Context& context, Findings& out) {
  if (!context.counted()) return;
  const std::int32_t expected = context.microbatches();
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.absent() || tally.forwards == expected) continue;
      const bool surplus = tally.forwards > expected;
      if (!out.found_at([&] { return place_of(order, position(order, chunk, expected)); }))
        continue;
      const std::size_t at = position(order, chunk, expected);
      const std::string part = words::part(context, order, chunk);
      Diagnostic finding;
      finding.message = fmt::format(
          "{} has {}{}, but {} {}", part, counted(tally.forwards, "forward"),
          words::on_order(context, order),
          context.schedule().microbatches ? "the step is declared to have"
                                          : "the other chunks have",
          context.schedule().microbatches ? counted(expected, "microbatch", "microbatches")
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
                      surplus ? "remove" : "add", counted(difference, "forward"), part);
      out.report(std::move(finding));
    }
  }
}

// One backward is written with the number of another chunk: the order has one surplus and one lack.
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
std::size_t surplus_backward_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::Backward, chunk, order.of(chunk).forwards);
}

// The first forward without a backward.
std::size_t lone_forward_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::Forward, chunk, order.of(chunk).backwards);
}

Diagnostic surplus_backward(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::size_t at = surplus_backward_at(order, chunk);
  Diagnostic finding;
  finding.message =
      fmt::format("{} is a backward of {} without a forward: the chunk has {} and {}",
                  words::placed(context, order, at), words::part(context, order, chunk),
                  counted(tally.forwards, "forward"), counted(tally.backwards, "backward"));
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

// The surplus_backward and the lack as one finding, since one edit cures both.
Diagnostic slipped(const Context& context, const OrderView& order, const Slip& slip) {
  Diagnostic finding = surplus_backward(context, order, slip.surplus);
  const std::size_t at = surplus_backward_at(order, slip.surplus);
  const std::size_t forward = lone_forward_at(order, slip.lacking);
  const std::string lacking = words::part(context, order, slip.lacking);
  const std::string meant = words::entry_text(context, order, backward_of(slip.lacking));
  finding.labels.push_back(
      {order.entries[forward].span(), fmt::format("{} lacks a backward", lacking)});
  finding.witness = words::entries(context, order, {at, forward});
  finding.help = {.text = fmt::format("{} lacks a backward; is `{}` meant?", lacking, meant),
                  .edits = {words::replace(context, order, at, meant)}};
  return finding;
}

Diagnostic missing_backward(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::string part = words::part(context, order, chunk);
  const std::size_t forward = lone_forward_at(order, chunk);
  Diagnostic finding;
  finding.message =
      tally.backwards == 0
          ? fmt::format("{} has {}{} and no backward", part, counted(tally.forwards, "forward"),
                        words::on_order(context, order))
          : fmt::format("{} has {} and only {}{}", part, counted(tally.forwards, "forward"),
                        counted(tally.backwards, "backward"), words::on_order(context, order));
  finding.labels = {{order.entries[forward].span(), "this forward has no backward"}};
  finding.witness = words::entries(context, order, {forward});
  finding.help.text =
      fmt::format("add `{}` after it", words::entry_text(context, order, backward_of(chunk)));
  return finding;
}

// A chunk has as many backwards as forwards.
//
//   [1, 2, -1, -1]          chunk 1 has one forward and two backwards, chunk 2 no backward at all
//
// TE accepts this one in silence: it compares totals, and the surplus backward of chunk 1 takes the
// graph of chunk 2.
void backward_count(const Context& context, Findings& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    if (const auto slip = single_slip(context, order)) {
      const auto place = [&] {
        return order.entries[surplus_backward_at(order, slip->surplus)].span();
      };
      if (out.found_at(place)) out.report(slipped(context, order, *slip));
      continue;
    }
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.backwards == tally.forwards) continue;
      // If the backwards are as many as they should be, the forwards are not.
      if (tally.backwards == context.microbatches()) continue;
      const bool too_many = tally.backwards > tally.forwards;
      const auto place = [&] {
        return order
            .entries[too_many ? surplus_backward_at(order, chunk) : lone_forward_at(order, chunk)]
            .span();
      };
      if (!out.found_at(place)) continue;
      out.report(too_many ? surplus_backward(context, order, chunk)
                          : missing_backward(context, order, chunk));
    }
  }
}

// The first weight gradient without a backward.
std::size_t surplus_weight_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::BackwardWeight, chunk, order.of(chunk).backwards);
}

// The first backward without a weight gradient.
std::size_t unweighted_at(const OrderView& order, std::int32_t chunk) {
  return order.find(Kind::Backward, chunk, order.of(chunk).weights);
}

Diagnostic surplus_weight(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::size_t at = surplus_weight_at(order, chunk);
  return {.message = fmt::format(
              "{} is a weight gradient of {} without a backward: the chunk has {} and {}",
              words::placed(context, order, at), words::part(context, order, chunk),
              counted(tally.backwards, "backward"), counted(tally.weights, "weight gradient")),
          .labels = {{order.entries[at].span(), "no backward is left for it"}},
          .help = {.text = "remove it, or add the backward that it belongs to"},
          .witness = words::entries(context, order, {at})};
}

Diagnostic missing_weight(const Context& context, const OrderView& order, std::int32_t chunk) {
  const ChunkTally& tally = order.of(chunk);
  const std::string part = words::part(context, order, chunk);
  const std::size_t backward = unweighted_at(order, chunk);
  const Action weight{.kind = Kind::BackwardWeight,
                      .chunk = chunk,
                      .microbatch = order.entries[backward].microbatch};
  return {
      .message = tally.weights == 0 ? fmt::format("{} delays its weight gradient and has none{}",
                                                  part, words::on_order(context, order))
                                    : fmt::format("{} has {} and only {}{}", part,
                                                  counted(tally.backwards, "backward"),
                                                  counted(tally.weights, "weight gradient"),
                                                  words::on_order(context, order)),
      .labels = {{order.entries[backward].span(), "this backward has no weight gradient"}},
      .help = {.text = fmt::format("add `{}` after it", words::entry_text(context, order, weight)),
               .edits = words::insert_after(context, order, backward, weight)},
      .witness = words::entries(context, order, {backward})};
}

// A chunk that delays its weight gradient has one for every backward.
//
//   [1, 1, -1, -1.5, -1]    the second backward of chunk 1 has no weight gradient
void weight_count(const Context& context, Findings& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (order.delay_of(chunk) != Delay::Always || tally.weights == tally.backwards) continue;
      // If the weight gradients are as many as they should be, the backwards are not.
      if (tally.weights == tally.forwards) continue;
      const bool too_many = tally.weights > tally.backwards;
      const auto place = [&] {
        return order
            .entries[too_many ? surplus_weight_at(order, chunk) : unweighted_at(order, chunk)]
            .span();
      };
      if (!out.found_at(place)) continue;
      out.report(too_many ? surplus_weight(context, order, chunk)
                          : missing_weight(context, order, chunk));
    }
  }
}

// Only a chunk that delays its weight gradient has one as an entry of its own.
//
//   delayed none:  [1, -1, -1.5]        the backward of chunk 1 has computed it already
//
// Without a declaration the entries themselves say which chunks delay, and this rule has nothing to
// find.
void weight_undeclared(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      const bool split = entry.kind == Kind::BackwardWeight || entry.kind == Kind::BackwardInput;
      if (!split || !order.knows(entry.chunk)) continue;
      const Delay delay = order.delay_of(entry.chunk);
      const bool fault =
          delay == Delay::Never || (delay == Delay::Always && entry.kind == Kind::BackwardInput);
      if (!fault || !out.found_at(entry.span())) continue;
      const std::string part = words::part(context, order, entry.chunk);
      if (delay == Delay::Always) {
        out.report({.message = fmt::format(
                        "{} splits off an input gradient, but every backward of {} is one",
                        words::placed(context, order, at), part),
                    .labels = {{entry.span(), ""}},
                    .help = {.text = "write B, or declare the chunk `mixed`"},
                    .witness = words::entries(context, order, {at})});
        continue;
      }
      out.report({.message = fmt::format(
                      "{} is {} gradient of {}, which does not delay its weight gradient",
                      words::placed(context, order, at),
                      entry.kind == Kind::BackwardInput ? "an input" : "a weight", part),
                  .labels = {{entry.span(), ""}},
                  .help = {.text = fmt::format(
                               "remove it, or declare that {} delays its weight gradient", part)},
                  .witness = words::entries(context, order, {at})});
    }
  }
}

// Declarations per chunk are made for every chunk, and a chunk has layers.
//
//   layers per chunk [2, -1]
//   two chunks' layers, three chunks' delays
//   layers per chunk [2, 0]             a warning: chunk 2 runs, and no layer of it is captured
//
// Megatron makes chunks without a layer: embedding or loss on a stage of their own.
//
// unknown_chunk and missing_chunk judge whether a list is as long as the order has chunks,
// since the list is what declares them.
void layers_per_chunk(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;
    const RankOrder& rank = *order.holder;
    for (std::size_t c = 0; c < rank.layers.values.size(); ++c) {
      const std::int64_t layers = rank.layers.values[c];
      const Severity severity = layers == 0 ? Severity::Warning : Severity::Error;
      if (layers >= 1 || !out.found(severity)) continue;
      out.report({.severity = severity,
                  .message = fmt::format("{}{} is declared to have {}{}",
                                         rank.layers.form == Layers::Form::Count
                                             ? "every chunk"
                                             : fmt::format("chunk {}", c + 1),
                                         words::on_order(context, order), counted(layers, "layer"),
                                         layers == 0 ? ": nothing of it is captured" : ""),
                  .help = {.text = layers == 0 ? "right if it holds the embedding or the loss "
                                                 "alone; else declare its layers"
                                               : "a chunk has at least one layer, or none"}});
    }
    const auto chunks = as_index(rank.chunks);
    const auto mismatch = [&](std::size_t length, std::string_view what) {
      if (length == chunks || !out.found()) return;
      out.report({.message = fmt::format("{} declared for {}{}, but there {} {}", what,
                                         counted(static_cast<std::int64_t>(length), "chunk"),
                                         words::on_order(context, order),
                                         chunks == 1 ? "is" : "are", chunks),
                  .help = {.text = "declare it for every chunk, in order"}});
    };
    if (rank.layers.form == Layers::Form::List) mismatch(rank.layers.values.size(), "layers are");
    if (rank.delay) mismatch(rank.delay->size(), "whether the weight gradient is delayed is");
  }
}

constexpr Rule kCountsRules[] = {
    {"S12", "unknown-chunk", "a chunk that the rank does not have", Family::Shape, Pass::Counts,
     unknown_chunk},
    {"S13", "missing-chunk", "a chunk that never runs", Family::Shape, Pass::Counts, missing_chunk},
    {"S14", "unequal-microbatches", "chunks run different numbers of microbatches", Family::Shape,
     Pass::Counts, unequal_microbatches},
    {"S15", "backward-count", "a chunk has not as many backwards as forwards", Family::Shape,
     Pass::Counts, backward_count},
    {"S16", "weight-count", "a chunk has not as many weight gradients as backwards", Family::Shape,
     Pass::Counts, weight_count},
    {"S17", "weight-undeclared", "a weight gradient of a chunk that does not delay it",
     Family::Shape, Pass::Counts, weight_undeclared},
    {"S18", "layers-per-chunk", "layers that do not fit the chunks", Family::Shape, Pass::Counts,
     layers_per_chunk},
};

}  // namespace

std::span<const Rule> count_rules() {
  return kCountsRules;
}

}  // namespace capo::rules
