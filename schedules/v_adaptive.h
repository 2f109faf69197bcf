// A V schedule within a memory limit: of all building blocks on a V that keep the limit, the one
// whose order takes the least time, after Qi et al., Pipeline Parallelism with Controllable Memory,
// arXiv 2405.15362, and v_auto_schedule.py of sail-sg/zero-bubble-pipeline-parallelism.
//
//   4 ranks, limit of 2 microbatches    the memory of V-Min, and what that costs
//                    4 microbatches    the memory of 1F1B and nearly no bubble
//
// Every rank holds a chunk from its forward to its weight half, whatever the setting says that the
// input half gives back; the limit is counted in chunks. More than two for every rank are never
// used. The order is that of the published program, which tries the same blocks in the same way:
// the first of the shortest, by the time from a rank's first start to its last end. It is not the
// shortest there is: where costs differ much, no block of six equal slots fits them well.
//
// Time grows with the ranks, the microbatches and the limit: 32 ranks and 256 microbatches without
// a limit are about two thousand blocks and a second or two. Tested by v_adaptive_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// Two chunks a rank, two ranks at least; refuses a limit that no block keeps.
[[nodiscard]] Result<PublishedOrders, std::string> v_adaptive(const Setting& setting);

}  // namespace capo::published
