// What torch.distributed.pipelining would say to a schedule: its `_validate_schedule`, message for
// message (torch 2.11).
//
// The validator scans each rank's list by itself and counts distinct microbatches per stage. It
// does not look at the order across ranks, at repeated actions, at which microbatches there are,
// nor at any transfer. capo predicts it from the schedule as torch reads it. Lowering and
// simulation are not predicted yet. Tested by torch_test.cpp against torch's own verdicts.

#pragma once

#include <capo/core/order/input.h>

#include <cstdint>
#include <string>

namespace capo::torch {

/// "ok", or the first line of what torch raises, with its type: "AssertionError: Rank 1, step 20:
/// ...".
[[nodiscard]] std::string validate(const Input& input, std::int64_t stages,
                                   std::int64_t microbatches);

}  // namespace capo::torch
