// What is declared per chunk is declared for every chunk, and a chunk has layers.
//
//   layers per chunk [2, -1]
//   two chunks' layers, three chunks' delays
//   layers per chunk [2, 0]             a warning: chunk 2 runs, and nothing of it is captured
//
// Megatron makes chunks without a layer: embedding or loss on a stage of their own.
//
// That a list is as long as the order has chunks is judged by unknown_chunk and missing_chunk,
// since the list is what declares them. Tested by layers_per_chunk_test.cpp and
// tests/corpus/rules/S18/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

void layers_per_chunk(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;
    const RankOrder& rank = *order.holder;
    for (std::size_t c = 0; c < rank.layers.values.size(); ++c) {
      const std::int64_t layers = rank.layers.values[c];
      const Severity severity = layers == 0 ? Severity::Warning : Severity::Error;
      if (layers >= 1 || !out.wants("S18", severity)) continue;
      out.keep(
          {.rule = "S18",
           .severity = severity,
           .message =
               fmt::format("{}{} is declared to have {}{}",
                           rank.layers.form == Layers::Form::Count ? "every chunk"
                                                                   : fmt::format("chunk {}", c + 1),
                           words::on_order(context, order), words::count(layers, "layer"),
                           layers == 0 ? ": nothing of it is captured" : ""),
           .help = {.text = layers == 0 ? "leave it out of the order if it is not to be captured"
                                        : "a chunk has at least one layer, or none"}});
    }
    const auto chunks = static_cast<std::size_t>(rank.chunks);
    const auto mismatch = [&](std::size_t length, std::string_view what) {
      if (length == chunks || !out.wants("S18")) return;
      out.keep({.rule = "S18",
                .message = fmt::format("{} declared for {}{}, but there {} {}", what,
                                       words::count(static_cast<std::int64_t>(length), "chunk"),
                                       words::on_order(context, order), chunks == 1 ? "is" : "are",
                                       chunks),
                .help = {.text = "declare it for every chunk, in order"}});
    };
    if (rank.layers.form == Layers::Form::List) mismatch(rank.layers.values.size(), "layers are");
    if (rank.delay) mismatch(rank.delay->size(), "whether the weight gradient is delayed is");
  }
}

}  // namespace capo::rules
