// The schedules of one chunk a rank: GPipe, 1F1B, and the zero-bubble schedules H1 and H2 that were
// written down by hand rather than searched for.
//
//   2 ranks, 4 microbatches   rank 0                                rank 1
//   gpipe                     F0 F1 F2 F3 BW0 BW1 BW2 BW3           the same
//   1f1b                      F0 F1 BW0 F2 BW1 F3 BW2 BW3           F0 BW0 F1 BW1 F2 BW2 F3 BW3
//   zb-h1                     F0 F1 B0 W0 F2 B1 W1 F3 B2 W2 B3 W3   F0 B0 F1 B1 W0 F2 B2 W1 ... W3
//
// All rules are of the rank and the numbers alone; costs and memory are not looked at. Any number
// of microbatches is accepted. With fewer than a rank would run ahead, all of its forwards come
// first: such a schedule is still correct, but what the papers say of bubbles and memory no longer
// holds of it (ZB-H1 and H2 as published want twice as many microbatches as ranks).
//
// Qi et al., arXiv 2401.10241; basic1f1b.py and efficiency.py of
// sail-sg/zero-bubble-pipeline-parallelism. Tested by linear_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// All forwards, then all backwards, whole. Holds every microbatch at once.
[[nodiscard]] Result<PublishedOrders, std::string> gpipe(const Setting& setting);

/// Rank r of p runs p-1-r forwards ahead, then a forward and a whole backward in turn. It holds p-r
/// microbatches.
[[nodiscard]] Result<PublishedOrders, std::string> one_f_one_b(const Setting& setting);

/// 1F1B with split backwards, where rank r keeps back r weight halves to fill its drain. Every rank
/// holds p microbatches at most until their weight half is done.
[[nodiscard]] Result<PublishedOrders, std::string> zero_bubble_h1(const Setting& setting);

/// H1 with twice the forwards ahead and twice the weight halves kept back: 2p-1 microbatches.
[[nodiscard]] Result<PublishedOrders, std::string> zero_bubble_h2(const Setting& setting);

}  // namespace capo::published
