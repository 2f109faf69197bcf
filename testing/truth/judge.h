// One case of the truth campaign, judged and run, and how the two go together (truth_line.h).
//
//   accepted   every gradient equal to eager execution, and eager within its bounds of float64
//   rejected   the victims that were seen are those that were predicted, and some gradient is
//              wrong; eager execution itself is within its bounds
//
// If it is not declared how ranks communicate, an order that is accepted is accepted and right
// under the values that were drawn for its run too, and one that is rejected is run under values
// under which it is rejected. A case that was made sound has to be accepted, and a fault has to be
// reported by its rule, so that a wrong verdict on an order that comes out wrong does not slip
// through. Sound cases run through the checked door, which opens for no other case. If an invariant
// of capo's own breaks, on the way to the verdict or behind it, the case disagrees with its message
// as the reason. If the engine gives up, the verdict has nothing to agree with: that is an error of
// the machine, and makes no line. Tested by tests/testing/truth/judge_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "run/engine/engine.h"
#include "testing/truth/truth_case.h"
#include "testing/truth/truth_line.h"

namespace capo::testing {

/// `engine`: fresh, since its memory is given back with it.
[[nodiscard]] Result<TruthLine, Error> judge_truth(const TruthCase& of, run::Engine& engine);

/// Judges on two engines, on which victims, verdict and equality have to be the same.
[[nodiscard]] Result<TruthLine, Error> judge_truth(const TruthCase& of, run::Engine& engine,
                                                   run::Engine& host);

}  // namespace capo::testing
