#include "optimise/calls.h"

#include <algorithm>
#include <cmath>

namespace capo::optimise {

Calls::Calls(const Problem& problem)
    : problem_(problem), most_(static_cast<std::uint32_t>(problem.frame.weights_in_call)) {
  if (!problem.fuses()) return;
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    const Series& weight = problem.series[series_of(stage, Half::Weight)];
    double sum = weight.takes;
    for (std::uint32_t place = 0; place < most_; ++place) {
      sums_.push_back(sum);
      sum += weight.further;
    }
  }
}

namespace {

// The weight gradients of the largest call of a stage: until it is over, each holds what it gives
// up.
double most_in_call(const Problem& problem, const Series& weight) {
  const double most = std::min(problem.frame.weights_in_call, problem.frame.microbatches);
  if (weight.holds >= 0) return most;
  const double fit = problem.memory_limit * (1 + 1e-9) / -weight.holds;
  return std::clamp(std::floor(fit + 1e-9), 1.0, most);
}

}  // namespace

Problem with_least_weights(Problem problem) {
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    Series& weight = problem.series[series_of(stage, Half::Weight)];
    const double most = most_in_call(problem, weight);
    weight.takes = std::min(weight.takes, (weight.takes + (most - 1) * weight.further) / most);
    weight.further = weight.takes;
  }
  problem.frame.weights_in_call = 1;
  return problem;
}

}  // namespace capo::optimise
