#include "optimise/calls.h"

#include <algorithm>

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

Problem with_least_weights(Problem problem) {
  const double most = std::min(problem.frame.weights_in_call, problem.frame.microbatches);
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    Series& weight = problem.series[series_of(stage, Half::Weight)];
    weight.takes = std::min(weight.takes, (weight.takes + (most - 1) * weight.further) / most);
    weight.further = weight.takes;
  }
  problem.frame.weights_in_call = 1;
  return problem;
}

}  // namespace capo::optimise
