// torch's `_add_send_recv`: a compute-only table with the transfers that PyTorch puts in.
//
//   0F0 | 1F0   ->   0F0 0SEND_F0 | 1RECV_F0 1F0
//
// Ranks are swept in ascending order, again and again; an action whose inputs are there is appended
// to its rank's list, followed by its send, and the receive is appended to the other rank's list at
// the same moment. If a sweep moves nothing torch gives up, and does not say where. Tested by
// predict_test.cpp against torch's own lowered tables.

#pragma once

#include "core/frameworks/torch/rows.h"

#include <string>

namespace capo::torch {

struct Lowered {
  Rows rows;
  std::string error;  ///< the first line of what torch raises; empty if it lowers
};

/// The rows are compute-only; idle slots and REDUCE_GRAD are left out, as PyTorch's runtime does
/// first.
[[nodiscard]] Lowered lower(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage);

}  // namespace capo::torch
