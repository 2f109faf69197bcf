// Whether TE's reuse of buffers could hurt an order, told without a plan.
//
//   [1, 1, -1, -1.5, -1, -1.5]      no: every weight gradient follows its backward
//   [1, -1, 1, -1.5, -1, -1.5]      yes: the second forward takes the input that -1.5 still reads
//
// A list that declares no plan is judged under TE's only if this says so, since nearly no list is
// and planning one costs more than all other rules. One signature is taken for granted, and counted
// microbatches that are in order by themselves. The answer is reuse.h's for static inputs and
// incoming gradients, with two exceptions: an order with two weight gradients of one chunk
// outstanding hurts nobody, since TE cannot capture it at all, and memory of the pool does not
// count, since chunks of a bare list read nothing from each other. Tested against the plan by
// could_hurt_test.cpp.

#pragma once

#include "core/order/schedule.h"

namespace capo {

[[nodiscard]] bool te_could_hurt(const RankOrder& rank);

}  // namespace capo
