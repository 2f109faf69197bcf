// The cases of the truth campaign that do not depend on its seed, the first of all: every campaign
// of two thousand orders has them.
//
//   sound    the orders of TransformerEngine pull request 2376 and every published schedule, with
//            every kind of module and in both granularities, under plan `safe`
//   faulty   those orders of the pull request under TransformerEngine's plan, where what model
//            chunks send comes too late, and the one whose last backward is of the wrong layer
//
// The pull request's orders are those of examples/te2376, with eight experts where modules are
// grouped. Tested by tests/testing/truth/cases_test.cpp.

#pragma once

#include "testing/truth/truth_case.h"

#include <cstddef>
#include <optional>

namespace capo::testing {

/// The case of this index; nullopt behind the last one.
[[nodiscard]] std::optional<TruthCase> fixed_sound_case(std::size_t index);
[[nodiscard]] std::optional<TruthCase> fixed_faulty_case(std::size_t index);

}  // namespace capo::testing
