// Laws of simulated time: what is accepted runs to its end, and nothing is faster than what has to
// be done one after the other.
//
// They hold of schedules whose chunks are wired to each other or not, at any costs. Verdict and
// simulator look at one task graph, so the first law is about two walks through it. The chain of a
// microbatch is worked out from entries and costs alone, with nothing of the simulator: its
// forwards and its backwards, of one chunk or, in one pipeline, of all. Costs by layer or of
// modules have no such chain, and the other bounds remain. Tested by
// tests/testing/laws/times_test.cpp; that capo keeps them is a property in
// tests/properties/laws_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "sim/simulation.h"
#include "testing/laws/law.h"

namespace capo::testing::laws {

/// An accepted schedule runs to its end in the simulator. The law holds of a schedule that is not
/// accepted.
[[nodiscard]] Breach finishes_where_accepted(const Schedule& schedule,
                                             const SimulationOptions& options = {});

/// The makespan is no less than the chain of any microbatch, the simulation's own critical path,
/// what its busiest rank computes, and its lower bounds. The law holds of a schedule that cannot be
/// simulated.
[[nodiscard]] Breach is_no_faster_than_its_chains(const Schedule& schedule,
                                                  const SimulationOptions& options = {});

/// The longest chain of one microbatch, as it is replayed; 0 if the costs have no such chain.
[[nodiscard]] double longest_chain(const Schedule& schedule, const Costs& costs);

}  // namespace capo::testing::laws
