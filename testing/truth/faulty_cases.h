// Cases of the truth campaign that are at fault, drawn: what a run of them has to show.
//
// Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/truth/truth_case.h"

namespace capo::testing {

/// A fault of testing/faults/plan or testing/faults/modules in what is sound without it, and of a
/// sort that leaves something to run: under TransformerEngine's plan or, in one of two that are
/// faults there too, under capo's own.
[[nodiscard]] TruthCase draw_plan_fault_case(Dice& dice);
[[nodiscard]] TruthCase draw_module_fault_case(Dice& dice);

}  // namespace capo::testing
