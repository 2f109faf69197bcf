// 1F1B on a V: the first chunk of each rank on the way down, the second on the way back, and whole
// backwards (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362).
//
//   2 ranks, 2 microbatches (microbatch.chunk, both from 0)
//   rank 0:  F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0
//   rank 1:  F0.0 F0.1 F1.0 F1.1 BW0.1 BW0.0 BW1.1 BW1.0
//
// A building block of six slots a rank is repeated for each microbatch: a forward takes one slot, a
// backward two. Then every task, in the order of its slot, moves to the first free place that its
// inputs, the microbatch before it and the peak of the repeated block allow; only warm-up and
// cool-down find such a place.
//
// The order is that of the published program, token by token. It does not depend on the costs, and
// the block holds about two thirds of the memory of 1F1B whatever the limit of the setting.
// Tested by one_f_one_b_v_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// Two chunks a rank; any number of ranks and microbatches, from 1.
[[nodiscard]] Result<PublishedOrders, std::string> one_f_one_b_v(const Setting& setting);

}  // namespace capo::published
