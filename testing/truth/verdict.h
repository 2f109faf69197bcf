// One case of the truth campaign, run, and what it says about the model: whether the verdict and
// the gradients agree.
//
//   accepted   every gradient equal to eager execution, and eager within its bounds of float64
//   rejected   the victims that were seen are those that were predicted, and some gradient is wrong
//
// Tested by tests/testing/truth_test.cpp.

#pragma once

#include <capo/run/engine.h>
#include <capo/run/run.h>
#include <capo/testing/truth/cases.h>

#include <cstdint>
#include <string>

namespace capo::testing {

struct TruthVerdict {
  bool accepted = false;
  bool right = false;   ///< all gradients
  bool agrees = false;  ///< the verdict and what was seen
  std::string line;     ///< one JSON object, without a line break
};

/// `engine`: fresh, since its memory is given back with it.
[[nodiscard]] TruthVerdict judge_truth(const TruthCase& of, std::uint64_t number,
                                       run::Engine& engine);

}  // namespace capo::testing
