// Where one chunk's gradients are reduced, every chunk's are.
//
//   rank 0: F1.0 B1.0 reduce1
//   rank 1: F1.0 B1.0             stage 1 keeps gradients of its own, and its replicas drift apart
//
// An order without any reduction leaves them to somebody else and says nothing about it; with one,
// the others were forgotten. A chunk accumulates gradients if it has a W or a whole B, unless it is
// declared and all its layers are frozen. A replay order is judged like a capture order. Tested by
// reduce_missing_test.cpp and tests/corpus/rules/G14/.

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/gradients/gradient_entries.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <optional>

namespace capo::rules {

namespace {

struct Reduction {
  const OrderView* order;
  std::size_t at;
};

std::optional<Reduction> first_reduction(const Context& context) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      if (order.entries[at].kind == Kind::ReduceGradient) return Reduction{&order, at};
    }
  }
  return std::nullopt;
}

bool trains(const Module& module) {
  return !module.flags.frozen_weight || module.flags.bias;
}

// Whether all layers of the chunk are declared and have nothing to train.
bool frozen(const Context& context, std::int32_t rank, std::int32_t chunk) {
  return distinct_layers(context, rank, chunk) > 0 &&
         module_at_fault(context, rank, chunk, trains) == nullptr;
}

// By chunk: whether it is reduced, and where its last gradient is.
struct Chunk {
  bool reduced = false;
  std::size_t gradient = 0;
};

std::vector<Chunk> chunks_of(const OrderView& order) {
  std::vector<Chunk> chunks(order.tally.size(), {false, order.entries.size()});
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (!order.knows(entry.chunk)) continue;
    Chunk& of = chunks[static_cast<std::size_t>(entry.chunk) - 1];
    of.reduced = of.reduced || entry.kind == Kind::ReduceGradient;
    if (makes_weight_gradient(order, entry)) of.gradient = at;
  }
  return chunks;
}

Diagnostic missing(const Context& context, const OrderView& order, std::size_t gradient,
                   const Reduction& other) {
  CAPO_ASSERT(gradient < order.entries.size(), "every chunk of a clean order has gradients");
  const Entry& last = order.entries[gradient];
  const Entry& reduction = other.order->entries[other.at];
  const Action reduce{.kind = Kind::ReduceGradient, .chunk = last.chunk};
  return {
      .rule = "G14",
      .family = Family::Gradients,
      .message = fmt::format("the gradients of {}{} are never reduced, though {} reduces those "
                             "of {}{}",
                             words::part(context, order, last.chunk),
                             words::on_order(context, order), words::quoted(context, reduction),
                             words::part(context, *other.order, reduction.chunk),
                             words::on_order(context, *other.order)),
      .labels = {{last.span(), "the last gradient, which nobody reduces"},
                 {reduction.span(), "reduced here"}},
      .help = {.text = fmt::format("add `{}` after it", words::entry_text(context, order, reduce)),
               .edits = words::insert_after(context, order, gradient, reduce)},
      .witness = words::entries(context, order, {gradient})};
}

}  // namespace

void reduce_missing(const Context& context, Diagnostics& out) {
  const std::optional<Reduction> other = first_reduction(context);
  if (!other) return;
  for (const OrderView& order : context.orders()) {
    const std::vector<Chunk> chunks = chunks_of(order);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (chunks[c].reduced) continue;
      if (frozen(context, order.rank, static_cast<std::int32_t>(c) + 1)) continue;
      if (out.wants("G14")) out.keep(missing(context, order, chunks[c].gradient, *other));
    }
  }
}

}  // namespace capo::rules
