// V-Half and V-Min: building blocks on a V that hold a half and a third of the memory of 1F1B,
// after Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, with the greedy
// reordering of zbv_greedy.py of sail-sg/zero-bubble-pipeline-parallelism.
//
//   V-Min, 2 ranks, rank 0:  F0.0 at slot 0, F0.1 at 3, B0.1 at 4, B0.0 at 7; microbatch 1 six
//   later
//
// A block places the forwards and the input halves of one microbatch, and every six slots the next
// begins. Weight halves fill the slots between. The tasks of warm-up and cool-down then move to the
// first free slot that their inputs and the peak of the repeated block allow, twice: first with the
// weight halves in place, then, in the cool-down, with weight halves that make way.
//
// The order is that of the published program, token by token. It does not depend on the costs; with
// a forward, an input half and a weight half that differ much, V-Min gains a bubble per microbatch.
// The memory limit is not looked at: v_adaptive.h searches within one.
// Tested by v_greedy_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// Two chunks a rank; any number of ranks and microbatches, from 1.
[[nodiscard]] Result<PublishedOrders, std::string> v_half(const Setting& setting);
[[nodiscard]] Result<PublishedOrders, std::string> v_min(const Setting& setting);

}  // namespace capo::published
