// torch's `_simulate_comms_compute`: does a table with transfers come to its end, one action a
// step?
//
// Ranks are tried in ascending order, effects visible at once to the ranks after; then every rank
// that idled in this step is tried once more. A send never waits. torch checks neither that a
// backward has its own forward nor that a weight gradient has its input gradient. Where nothing
// moves it raises "not progressing", or, where its error text trips over a table with fewer steps
// than ranks, IndexError. Tested by predict_test.cpp against torch's verdicts and steps.

#pragma once

#include "core/frameworks/torch/rows.h"

#include <cstddef>
#include <string>
#include <vector>

namespace capo::torch {

struct Simulated {
  std::string error;       ///< the first line of what torch raises; empty if it ends
  std::size_t length = 0;  ///< steps of the longest rank
  std::vector<std::vector<std::size_t>> steps;  ///< by rank, the step of each action
};

[[nodiscard]] Simulated simulate(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage);

}  // namespace capo::torch
