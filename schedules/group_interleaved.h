// Interleaved 1F1B in groups of any size, after Wan et al., PipeOffload, arXiv 2503.01328: each
// microbatch and chunk starts at a slot of an endless grid, and a rank's order is the order of its
// slots.
//
//   2 ranks, 2 chunks, groups of 2, 2 microbatches (microbatch.chunk, both from 0)
//   rank 0:  F0.0 F1.0 F0.1 F1.1 B0.1 W0.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0
//   rank 1:  F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0
//
// A group of g microbatches passes chunk by chunk. A chunk follows the one before it after k
// groups, where k * g is at least half the ranks: below that no order of this shape keeps its
// period. Groups of p ranks are the published GIS with the memory of interleaved 1F1B, of p/2 its
// half-memory form. The input half and the weight half of a backward run back to back.
//
// The order is that of the published program, token by token, and does not depend on the costs: the
// program's launcher may raise the group size where costs are uneven, its generator does not.
// Tested by group_interleaved_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <cstdint>
#include <string>

namespace capo::published {

/// Any number of ranks, microbatches and chunks, and any group, from 1; the last group may be
/// short.
[[nodiscard]] Result<PublishedOrders, std::string> group_interleaved(const Setting& setting,
                                                                     std::int32_t group);

}  // namespace capo::published
