// A chunk's gradients are all there before they are reduced.
//
//   rank 0: F1.0 B1.0 reduce1 W1.0     the reduction reads main_grad, which W1.0 has yet to add to
//
// What counts is W, or B where that is whole, of any microbatch of the chunk. A flag such as
// grad_added_to_main_grad, which TransformerEngine sets at B already, changes nothing about it.
// Lists and tables without reductions are at no fault; a chunk that is never reduced is
// reduce_missing's. One finding for each chunk of an order. Tested by reduce_early_test.cpp and
// tests/corpus/rules/G13/.

#include <capo/core/diag/diagnostics.h>
#include <capo/core/rules/checks.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/gradients/gradient_entries.h>
#include <capo/core/rules/words.h>

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

namespace {

struct Reduced {
  std::size_t at = 0;        ///< the first reduction of the chunk
  std::size_t gradient = 0;  ///< the first gradient behind it; neither yet: entries.size()
};

std::vector<Reduced> reduced_chunks(const OrderView& order) {
  const std::size_t none = order.entries.size();
  std::vector<Reduced> chunks(order.tally.size(), {none, none});
  for (std::size_t at = 0; at < none; ++at) {
    const Entry& entry = order.entries[at];
    if (!order.knows(entry.chunk)) continue;
    Reduced& of = chunks[static_cast<std::size_t>(entry.chunk) - 1];
    if (entry.kind == Kind::ReduceGradient && of.at == none) of.at = at;
    if (of.at == none || of.gradient != none) continue;
    if (makes_weight_gradient(order, entry)) of.gradient = at;
  }
  return chunks;
}

Diagnostic early(const Context& context, const OrderView& order, const Reduced& reduced) {
  const Entry& gradient = order.entries[reduced.gradient];
  return {.rule = "G13",
          .family = Family::Gradients,
          .message = fmt::format("{} reduces the gradients of {} before they are complete: {} adds "
                                 "to them {}",
                                 words::placed(context, order, reduced.at),
                                 words::part(context, order, gradient.chunk),
                                 words::quoted(context, gradient),
                                 words::later(order, reduced.at, reduced.gradient)),
          .labels = {{order.entries[reduced.at].span(), "reduces an incomplete gradient"},
                     {gradient.span(), "this part comes too late"}},
          .help = {.text = "put the reduction behind the last weight gradient of the chunk, which "
                           "is its last B where B is whole"},
          .witness = words::entries(context, order, {reduced.at, reduced.gradient})};
}

}  // namespace

void reduce_early(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    const bool reduces =
        std::any_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
    if (!reduces) continue;
    for (const Reduced& reduced : reduced_chunks(order)) {
      if (reduced.gradient == order.entries.size() || !out.wants("G13")) continue;
      out.keep(early(context, order, reduced));
    }
  }
}

}  // namespace capo::rules
