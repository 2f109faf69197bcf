// Draws cases of the truth campaign that are at fault, whose runs have to show it.
//
// Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/truth/truth_case.h"

namespace capo::testing {

/// Draws a sound order and puts one of plan_faults() or module_faults() into it that leaves the order
/// runnable. The plan is TransformerEngine's or, in half of the cases that are faults there too,
/// capo's own.
[[nodiscard]] TruthCase draw_plan_fault_case(Dice& dice);
[[nodiscard]] TruthCase draw_module_fault_case(Dice& dice);

}  // namespace capo::testing
