// The zero bubble search of V pipelines: as zero_bubble_search.h, where every rank holds two chunks
// and a microbatch runs down the ranks and back up.
//
//   2 ranks, 2 microbatches, F = B = W, limit 4 F:
//   rank 0:  F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 W0.1 B1.0 W1.1 W0.0 W1.0
//   rank 1:  F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0
//
// The first chunk of rank r is stage r, its second stage 2p-1-r of p ranks. The warm-up fills the
// way of the first microbatch; after it every round gives each rank one B and at most one F, and Ws
// go where the rank would wait otherwise or where memory demands one. Four combinations of two
// choices are tried, each again with the waits of its last try as allowance for as long as that
// helps, and the first of those whose most idle rank waits least is kept. Every decision is the one
// of the authors' program, down to the order of the additions, so that equal times decide alike;
// only a rank that is alone runs its Ws earlier than there.
//
// Ranks may differ in their times, which that program does not know. Work that a rank has beyond
// the rank with the least counts as waiting then, so that waits go to ranks that can afford them.
//
// That program gives up where a rank may hold less than about 2p forwards at a time. Here an order
// of another kind steps in: each rank starts what it can start first, and a forward only if the
// oldest microbatch on the rank can still run to its end. It keeps to every limit that holds one
// microbatch. It is no building block with a period: at their memory V-Half and V-Min are often
// shorter by a tenth.
//
// Qi et al., arXiv 2401.10241, section 6; zbv.py of sail-sg/zero-bubble-pipeline-parallelism at
// 39f2c186. Tested by zero_bubble_v_search_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// Two chunks a rank, alike in their times, which are those of a chunk, like the memory; ZB-V is
/// the limit of 2 times `ranks` forwards. Every limit that holds one microbatch, both its chunks,
/// is accepted.
[[nodiscard]] Result<PublishedOrders, std::string> zero_bubble_v_search(const Setting& setting);

}  // namespace capo::published
