// Found orders as everybody else sees them: judged by the verifier and timed by the simulator,
// before anybody is shown them.
//
// The search adds up times by itself, as fast as it can. What it says of its result is believed
// only if the verifier accepts the orders and the simulator comes to the same makespan, span and
// peaks; anything else is a bug of capo's and an InternalError. Tested by search_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "optimise/evaluation.h"
#include "optimise/problem.h"

namespace capo::optimise {

[[nodiscard]] Schedule verified(const Problem& problem, const Orders& orders,
                                const Figures& figures, const SimulationOptions& options);

}  // namespace capo::optimise
