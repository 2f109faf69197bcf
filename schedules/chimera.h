// Chimera: two 1F1B pipelines that run through the ranks against each other and fill one another's
// bubbles, each with a copy of the weights.
//
//   4 ranks, 4 microbatches, two for each direction; slots of one forward or backward each
//   rank 0:  F0.0 .    F1.0 F0.1 BW0.1 F1.1  BW1.1 BW0.0 .     BW1.0
//   rank 1:  .    F0.0 F0.1 F1.0 F1.1  BW0.1 BW0.0 BW1.1 BW1.0 .
//
// Chunk 1 is stage `rank` of direction 0, chunk 2 is stage p-1-rank of direction 1; each direction
// numbers its own half of the microbatches from 0. On a grid of slots, where a whole backward is as
// long as a forward, the two directions never want the same slot of a rank. More than p
// microbatches are units of p, 2p slots apart, which interlock without a gap: T slots for m
// microbatches on p ranks are 2m + p - 2, whatever m.
//
// The order is that of the grid and stays so whatever the costs, which are not looked at: where a
// backward is longer than a forward, units interlock less well. A rank holds from p/2 + 1 to p
// microbatches.
//
// Li and Hoefler, arXiv 2107.06925. Tested by chimera_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// For an even number p of ranks with two chunks each, and a multiple of p microbatches, both
/// directions together.
[[nodiscard]] Result<PublishedOrders, std::string> chimera(const Setting& setting);

}  // namespace capo::published
