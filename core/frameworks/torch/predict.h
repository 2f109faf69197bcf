// What torch.distributed.pipelining would say to a schedule: its validator, its lowering, and its
// simulator, message for message (torch 2.11).
//
// The validator scans each rank's list by itself and counts distinct microbatches per stage. It
// does not look at the order across ranks, at repeated actions, at which microbatches there are,
// nor at any transfer. A compute-only table is then lowered (lower.h) and what comes out
// simulated (simulate.h); a table with transfers is simulated as it is. Tested by
// predict_test.cpp against torch's own verdicts.

#pragma once

#include "core/frameworks/torch/rows.h"
#include "core/order/input.h"

#include <cstdint>
#include <optional>
#include <string>

namespace capo::torch {

/// Each step is "ok" or the first line of what torch raises: "AssertionError: Rank 1, step 20:
/// ...".
struct Predicted {
  std::string validate;
  std::optional<std::string> lower;     ///< nothing for a table that holds its transfers already
  std::optional<std::string> simulate;  ///< nothing where lowering failed
};

[[nodiscard]] std::string validate(const Rows& rows, std::int64_t stages,
                                   std::int64_t microbatches);

[[nodiscard]] Predicted predict(const Input& input, std::int64_t stages, std::int64_t microbatches);

}  // namespace capo::torch
