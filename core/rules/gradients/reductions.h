// When each chunk of an order is reduced first, and whether all of its gradients are made by then.
// Tested through the rules that ask: reduce_early, reduce_twice.

#pragma once

#include "core/rules/context.h"

#include <cstddef>
#include <vector>

namespace capo::rules {

struct Reduced {
  std::size_t at = 0;        ///< the first reduction of the chunk
  std::size_t gradient = 0;  ///< the first gradient behind it; neither yet: entries.size()
};

/// Of every chunk of the order; empty where it reduces nothing.
[[nodiscard]] std::vector<Reduced> reduced_chunks(const OrderView& order);

}  // namespace capo::rules
