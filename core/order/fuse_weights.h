// One call for several weight gradients of a chunk: those that stand next to each other become one
// composite, before anybody judges, prices or runs the order.
//
//   B1.0 B1.1 W1.0 W1.1 W1.2, at most 2   ->   B1.0 B1.1 (W1.0 W1.1) W1.2
//
// Weight gradients of one chunk that stand side by side in a composite are one call, whoever wrote
// the composite: what each of them reads is held until the call is over, and the gradient that they
// add to is read and written once. Transfers and waits for sends part no two of them: the call
// stands where its last one stood, and what stood between comes before it. Everything else parts
// them, and composites that are there already stay as they are. Tested by fuse_weights_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstdint>

namespace capo {

/// One call takes so many weight gradients, since kernels get their operands' addresses by value.
inline constexpr std::int32_t kMostFusedWeights = 16;

struct FusedWeights {
  std::int64_t calls = 0;      ///< those of more than one weight gradient
  std::int64_t gradients = 0;  ///< how many weight gradients these are
};

/// Puts up to `most` weight gradients into each call, in the orders of capture and of replay alike.
/// `most` is at least 1, which changes nothing.
FusedWeights fuse_weights(Schedule& schedule, std::int32_t most);

/// Whether two pieces of work that stand side by side in a composite are weight gradients of one
/// call. They are entries that became steps or work, and know their layer.
template <typename Piece>
[[nodiscard]] constexpr bool in_one_call(const Piece& a, const Piece& b) {
  return a.kind == Kind::BackwardWeight && b.kind == a.kind && a.chunk == b.chunk &&
         a.layer == b.layer;
}

}  // namespace capo
