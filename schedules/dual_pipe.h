// DualPipe and DualPipeV: two streams of microbatches that run through the ranks against each
// other, so that in the steady state every forward of one is overlapped with a backward of the
// other.
//
//   dualpipe, 2 ranks, 6 microbatches: F2.0&BW1.1 is one overlapped action
//   rank 0: F0.0 F0.1 F1.0 BW0.1 F1.1&BW0.0 F2.0&BW1.1 F2.1&BW1.0 BW2.1 B2.0 W2.0
//   rank 1: the same with .0 and .1 exchanged
//
// DualPipe's streams are two pipelines, with a copy of the weights each: chunk 1 is stage `rank` of
// direction 0, chunk 2 is stage p-1-rank of direction 1, and each direction numbers its own half of
// the microbatches from 0. The ranks up to the middle start with direction 0, the others with
// direction 1. DualPipeV cuts DualPipe in the middle: its two streams are the way down (chunk 1,
// stage `rank`) and the way back (chunk 2, stage 2p-1-rank) of the same microbatches.
//
// A rank's order depends on how far it is from where its own stream enters, and on nothing else;
// costs and memory are not looked at. Fewer than 2p microbatches would leave ranks without a steady
// state and are refused, as by the authors.
//
// DeepSeek-AI, arXiv 2412.19437; dualpipe.py and dualpipev.py of deepseek-ai/DualPipe. Tested by
// dual_pipe_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <string>

namespace capo::published {

/// For an even number p of ranks with two chunks each, and an even number of microbatches, both
/// directions together, from 2p on.
[[nodiscard]] Result<PublishedOrders, std::string> dual_pipe(const Setting& setting);

/// For any number p of ranks with two chunks each, and any number of microbatches from 2p on.
[[nodiscard]] Result<PublishedOrders, std::string> dual_pipe_v(const Setting& setting);

}  // namespace capo::published
