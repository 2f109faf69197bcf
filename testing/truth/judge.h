// One case of the truth campaign, judged and run, and how the two go together (truth_line.h).
//
//   accepted   every gradient equal to eager execution, and eager within its bounds of float64
//   rejected   the victims that were seen are those that were predicted, and some gradient is
//              wrong; eager execution itself is within its bounds
//
// What was made to be sound has to be accepted, and a fault has to be reported by its rule: a
// verdict that is wrong and comes out wrong all the same does not slip through. Sound cases run
// through the checked door, which opens for nothing else. Where an invariant of capo's own breaks,
// on the way to the verdict or behind it, the case disagrees with its message as the reason. Where
// the engine gives up, nothing was seen that a verdict could agree with: that is an error of the
// machine, and no line. Tested by tests/testing/truth/judge_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "run/engine/engine.h"
#include "testing/truth/truth_case.h"
#include "testing/truth/truth_line.h"

namespace capo::testing {

/// `engine`: fresh, since its memory is given back with it.
[[nodiscard]] Result<TruthLine, Error> judge_truth(const TruthCase& of, run::Engine& engine);

/// The same on two engines: victims, verdict and equality have to be the same on both.
[[nodiscard]] Result<TruthLine, Error> judge_truth(const TruthCase& of, run::Engine& engine,
                                                   run::Engine& host);

}  // namespace capo::testing
