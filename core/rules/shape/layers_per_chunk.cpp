// Every chunk has at least one layer, and what is declared per chunk is declared for every chunk.
//
//   layers per chunk [2, 0]             chunk 2 would have nothing to run
//   two chunks' layers, three chunks' delays
//
// That a list is as long as the order has chunks is judged by unknown_chunk and missing_chunk,
// since the list is what declares them. Tested by layers_per_chunk_test.cpp and
// tests/corpus/rules/S18/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

namespace capo::rules {

void layers_per_chunk(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;
    const RankOrder& rank = *order.holder;
    for (std::size_t c = 0; c < rank.layers.values.size(); ++c) {
      if (rank.layers.values[c] >= 1 || !out.wants("S18")) continue;
      out.keep(
          {.rule = "S18",
           .message = fmt::format(
               "{}{} is declared to have {}",
               rank.layers.form == Layers::Form::Count ? "every chunk"
                                                       : fmt::format("chunk {}", c + 1),
               words::on_order(context, order), words::count(rank.layers.values[c], "layer")),
           .help = {.text = "a chunk has at least one layer; leave out a chunk that has none"}});
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
