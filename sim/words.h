// Words that a report of one simulation and a comparison of several share.

#pragma once

#include "sim/simulation.h"

#include <string>

namespace capo {

/// "seconds", or "units of --cost" and of what a unit is the time.
[[nodiscard]] std::string unit_of_time(const Simulation& simulation);

/// A time in seconds, or in the unit of --cost.
[[nodiscard]] std::string time_in_words(const Simulation& simulation, double value);

/// A section that says of each time of a model what it comes from; empty if --cost says them all.
[[nodiscard]] std::string origins_in_words(const Simulation& simulation);

}  // namespace capo
