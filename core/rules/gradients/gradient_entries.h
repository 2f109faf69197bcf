// Which entries of an order make weight gradients: W, and B where it is whole.

#pragma once

#include "core/rules/context.h"

namespace capo::rules {

/// Of an entry of a chunk that the order knows.
[[nodiscard]] inline bool makes_weight_gradient(const OrderView& order, const Entry& entry) {
  return entry.kind == Kind::BackwardWeight ||
         (entry.kind == Kind::Backward && order.delay_of(entry.chunk) != Delay::Always);
}

}  // namespace capo::rules
