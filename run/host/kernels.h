// The kernels as plain C++ loops: what the host engine launches and replays.
//
// Deterministic: the same call on the same bytes writes the same bytes, in whatever order calls
// that do not depend on each other run. Plain loops, written for clarity first; the products work
// in tiles, which the compiler vectorises, and still add in ascending order. Right for a compiler
// that does not fuse multiplications with additions (-ffp-contract=off where the machine could).
//
// Throws InternalError for fp8, of which the host knows nothing, and for sizes that cannot be.
// Tested by tests/run/host/, against the float64 of reference/ by tests/run/modules/.

#pragma once

#include "run/kernels/call.h"

namespace capo::run::host {

void execute(const Call& call);

}  // namespace capo::run::host
