// Megatron-LM's orders of all ranks as one schedule, with its placement.
//
// Chunk by chunk the placement is the loop: chunk c of rank r is stage (c - 1) * PP + r. Layer by
// layer every layer is a chunk, and the stages of that loop are cut into their layers: those of
// chunk 1 of rank 0 come first, then those of chunk 1 of rank 1, and so on. Every rank holds the
// same number of layers in a chunk, which Megatron does not demand.
//
// Microbatches are counted, since Megatron runs those of a chunk first in, first out. Tested by
// schedule_test.cpp.

#pragma once

#include "core/frameworks/megatron/orders.h"
#include "core/order/schedule.h"

namespace capo::megatron {

/// Of all ranks: the request named none, and no layer count was negative.
[[nodiscard]] Schedule schedule_of(const Generated& generated);

}  // namespace capo::megatron
