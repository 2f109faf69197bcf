// Sound cases of the truth campaign, drawn. Each has to be accepted, and right.
//
// Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/truth/truth_case.h"

namespace capo::testing {

/// A published schedule of 1 to 4 ranks and 2, 4, 6 or 8 microbatches, or an order of one rank
/// where there is none of these counts. Capo's plan.
[[nodiscard]] TruthCase draw_published_case(Dice& dice);
/// draw_sound_order(), capo's plan.
[[nodiscard]] TruthCase draw_order_case(Dice& dice);
/// draw_sound_schedule() without replay orders, capo's plan.
[[nodiscard]] TruthCase draw_schedule_case(Dice& dice);
/// draw_sound_planned(), TransformerEngine's plan: all its sharing of memory, and nobody hurt.
[[nodiscard]] TruthCase draw_planned_case(Dice& dice);
/// draw_unwired_declared(), TransformerEngine's plan and contract, with modules of many flags.
[[nodiscard]] TruthCase draw_declared_case(Dice& dice);

}  // namespace capo::testing
