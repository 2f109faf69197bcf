// Seq1F1B: 1F1B on pieces of a sequence. Each microbatch is cut in k segments,
// and what runs ahead and in turn are segments, so that the bubble and what a
// rank holds shrink to a kth.
//
//   2 ranks, 2 microbatches, 2 segments; a number is that of a segment: 2 and 3
//   are microbatch 1 rank 0:  F0.0 F1.0 F2.0 BW1.0 F3.0 BW0.0 BW3.0 BW2.0 rank
//   1:  F0.0 F1.0 BW1.0 F2.0 BW0.0 F3.0 BW3.0 BW2.0
//
// A segment looks back at those before it. Forwards of a microbatch run from
// its first segment to its last, therefore, and backwards from the last to the
// first, whose keys and values gather gradients from all behind it.
//
// Segments are numbered as microbatches are: segment s of microbatch i is i * k
// + s, and the orders are those of m * k microbatches. Costs and memory, which
// are not looked at, would be those of a segment. That all segments cost the
// same, as the bubble of the paper has it, takes cuts that are shorter the
// further back a segment looks; an even cut makes later segments dearer.
//
// Sun et al., arXiv 2406.03488. Tested by seq_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <cstdint>
#include <string>

namespace capo::published {

/// Rank r of p runs p-2-r+k forwards of segments ahead, then a forward and a
/// whole backward in turn. It holds p-1-r+k segments. One chunk a rank and one
/// segment at least; with one segment it is 1F1B.
[[nodiscard]] Result<PublishedOrders, std::string> seq_one_f_one_b(const Setting& setting,
                                                                   std::int32_t segments);

}  // namespace capo::published
