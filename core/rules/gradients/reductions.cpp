#include "core/rules/gradients/reductions.h"

#include "core/rules/gradients/gradient_entries.h"

#include <algorithm>

namespace capo::rules {

std::vector<Reduced> reduced_chunks(const OrderView& order) {
  if (std::none_of(order.entries.begin(), order.entries.end(),
                   [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; }))
    return {};
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

}  // namespace capo::rules
