// Cases of the truth campaign that are at fault, drawn: what a run of them has to show.
//
// Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include <capo/testing/generators/dice.h>
#include <capo/testing/truth/truth_case.h>

#include <functional>

namespace capo::testing {

/// An order that TransformerEngine captures, under its plan, with a module whose weight gradient
/// reads memory that it shares. Drawn anew, eight times at most, where nobody is hurt; so it may
/// be right after all.
[[nodiscard]] TruthCase draw_reuse_case(Dice& dice);
/// The same; `hurts` says of a case whether somebody is hurt. A case at which it breaks an
/// invariant of capo's own is the one: whoever judges it can name it.
[[nodiscard]] TruthCase draw_reuse_case(Dice& dice,
                                        const std::function<bool(const TruthCase&)>& hurts);
/// A fault of testing/faults/plan or testing/faults/modules in what is sound without it, and of a
/// sort that leaves something to run.
[[nodiscard]] TruthCase draw_plan_fault_case(Dice& dice);
[[nodiscard]] TruthCase draw_module_fault_case(Dice& dice);

}  // namespace capo::testing
