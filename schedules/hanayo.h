// Hanayo: a wave of the model through the ranks, down and back, w times over.
//
//   3 ranks, 4 chunks, two waves   rank 0: stages 0 5 6 11    rank 1: 1 4 7 10    rank 2: 2 3 8 9
//
// With v = 2w chunks a rank, chunk c is stage (c-1)p + rank where c is odd and stage
// (c-1)p + p-1-rank where it is even: at each turn the microbatch stays on its rank.
//
// The paper gives the placement and pictures of the order; the order here is list scheduling on the
// setting's costs, of each rank where they differ. Whenever a rank is free it starts, of what has
// arrived, a whole backward before a forward and an earlier microbatch before a later one, and it
// never waits by choice. The order depends on the costs, therefore, and a wait that would pay is
// never found.
//
// The paper's bubble ratio at m = p, backwards twice as long as forwards and free transfers is
// (2p-2) / (3pw+p-1). Measured for p up to 32 and w from 2 to 8, the ratio of this order is between
// 9.1 % less (p = 3, w = 2) and 6.9 % more (p = 28, w = 8) than that; with one wave it is 12 % to
// 20 % less. A rank holds at most p microbatches then. With m > p no bound is set, since forwards
// that are cheap run far ahead of backwards that are dear; the memory limit of the setting is not
// looked at.
//
// Liu et al., arXiv 2308.15762. Tested by hanayo_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// For an even number of chunks a rank, any number of ranks and of microbatches, and costs that are
/// finite and not negative.
[[nodiscard]] Result<PublishedOrders, std::string> hanayo(const Setting& setting);

}  // namespace capo::published
