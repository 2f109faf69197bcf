// An entry names a chunk that the rank has.
//
//   layers per chunk [1]:  [1, -2]      chunk 2 is not declared
//   [1, 1000000, -1, -1000000]          chunks 1 to 1000000 cannot all occur in four entries
//
// Tested by unknown_chunk_test.cpp and tests/corpus/rules/S12/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

std::string declared_chunks(std::int32_t chunks) {
  if (chunks == 0) return "no chunk is";
  return chunks == 1 ? "only chunk 1 is" : fmt::format("only chunks 1 to {} are", chunks);
}

}  // namespace

void unknown_chunk(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (entry.kind == Kind::Idle || order.knows(entry.chunk) ||
          !out.wants_at("S12", entry.span()))
        continue;
      Diagnostic finding{.rule = "S12",
                         .labels = {{entry.span(), ""}},
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
      out.keep(std::move(finding));
    }
  }
}

}  // namespace capo::rules
