// Which mutant is on: at most one, chosen when a program starts.
//
// Only the generated sources of tests/mutants include this; what users get has neither the mutants
// nor the switch.

#pragma once

#include <string_view>

namespace capo::mutants {

/// Whether this is the mutant that CAPO_MUTANT names in the environment.
[[nodiscard]] bool on(std::string_view name);

}  // namespace capo::mutants
