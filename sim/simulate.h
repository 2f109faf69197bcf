// The simulator: every task begins as soon as all that it waits for is there.
//
// Two ways lead to the same result. If no task can slow down or keep out another, the order of
// events does not matter, and one pass along the graph's edges gives all times (run_freely). If a
// device is shared, by ranks or by computation with communication, events are taken in the order of
// time (run_shared): a device computes for all its ranks side by side, as `beside` says, and
// computes slower by Costs::slowdown while it also communicates, and messages go slower by
// Costs::crowded while devices at their ends compute. A test holds the two against each other.
//
// A graph that does not finish (execution.h) has no times. Ideal links occupy nobody and slow
// nobody down. Tested by simulate_test.cpp; bench/simulate prints its speed.

#pragma once

#include "sim/durations.h"
#include "sim/task_times.h"

#include <optional>

namespace capo {

/// Precondition of this and of both ways below: the graph finishes.
[[nodiscard]] TaskTimes simulate(const Subject& subject, const Costs& costs);

/// nullopt if tasks wait for each other, or for what nobody makes.
[[nodiscard]] std::optional<TaskTimes> simulate_if_it_finishes(const Subject& subject,
                                                               const Costs& costs);

/// The two ways of simulate(), which chooses.
[[nodiscard]] TaskTimes run_freely(const Subject& subject, const Durations& durations);
[[nodiscard]] TaskTimes run_shared(const Subject& subject, const Durations& durations,
                                   const Costs& costs);

}  // namespace capo
