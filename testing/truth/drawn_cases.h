// Cases of the truth campaign that are drawn, by what a run of them has to show.
//
//   sound        each has to be accepted, and right: sound_cases.cpp
//   declared     they can be run, though the generators are for rules, which ask for less than an
//                engine does: declared_cases.cpp
//   faulty       a run has to show the fault that was put in: faulty_cases.cpp
//   reuse        TransformerEngine's own reuse of memory hurts or spares the order: reuse_cases.cpp
//   undeclared   so it does, depending on how ranks communicate: reuse_cases.cpp
//
// cases.h says how often each is drawn. Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/sound_declared.h"
#include "testing/truth/truth_case.h"

#include <functional>

namespace capo::testing {

/// A published schedule of 1 to 4 ranks and 2, 4, 6 or 8 microbatches under capo's plan, or an
/// order of one rank if there is no schedule of these counts.
[[nodiscard]] TruthCase draw_published_case(Dice& dice);
/// draw_sound_order() under capo's plan.
[[nodiscard]] TruthCase draw_order_case(Dice& dice);
/// draw_sound_schedule() without replay orders, under capo's plan.
[[nodiscard]] TruthCase draw_schedule_case(Dice& dice);
/// draw_sound_planned() under TransformerEngine's plan: memory is shared and no reader is hurt.
[[nodiscard]] TruthCase draw_planned_case(Dice& dice);
/// draw_unwired_declared() under TransformerEngine's plan and contract, with modules of many flags.
[[nodiscard]] TruthCase draw_declared_case(Dice& dice);

/// draw_sound_declared() with chunks that are not wired to each other, as in TransformerEngine.
[[nodiscard]] Declared draw_unwired_declared(Dice& dice);

/// Gives all modules one square shape and one type, since each layer reads the output of the one
/// before; makes a layernorm-mlp of a transformer-layer or moe-layer, which capo does not run;
/// gives every input a gradient; and takes composites apart, since no order of launches shows a
/// race inside their graphs. A fused module returns a copy beside its weight gradient, so the rule
/// of returned gradients, G10, looks at weights alone.
void make_runnable(Dice& dice, Declared& declared);

/// Gives the first module's shape to modules without one, as faults make them.
void fill_shapes(Declared& declared);

/// The case of a schedule with its declarations, read from its text as a user's would be.
[[nodiscard]] TruthCase case_of(Declared declared);

/// Draws a sound order and puts one of plan_faults() or module_faults() into it that leaves the
/// order runnable. The plan is TransformerEngine's or, in half of the cases that are faults there
/// too, capo's own.
[[nodiscard]] TruthCase draw_plan_fault_case(Dice& dice);
[[nodiscard]] TruthCase draw_module_fault_case(Dice& dice);

/// Tells whether a case is of the sort that is looked for.
using IsWanted = std::function<bool(const TruthCase&)>;

/// Draws an order that TransformerEngine captures, with a module whose weight gradient reads shared
/// memory, until reuse hurts a reader: eight times, and then once more whatever comes, so the case
/// may be right after all.
[[nodiscard]] TruthCase draw_reuse_case(Dice& dice);
/// Draws likewise; `hurts` says whether a case has a hurt reader. A case at which it breaks an
/// invariant of capo's own is taken, so that the judge of the case can name it.
[[nodiscard]] TruthCase draw_reuse_case(Dice& dice, const IsWanted& hurts);

/// draw_published_case() of several ranks under TransformerEngine's plan, with such a module. One
/// in four declares the communicators alone and one in four the kind of send alone, the others
/// neither.
[[nodiscard]] TruthCase draw_undeclared_case(Dice& dice);

/// Draws such an order until reuse hurts no reader though some weight gradient comes later than
/// right behind its backward, so that another buffer could have taken over its operands: capo
/// accepts it by looking and not by the way it was made. After 64 draws it is
/// draw_planned_case()'s.
[[nodiscard]] TruthCase draw_spared_case(Dice& dice);
[[nodiscard]] TruthCase draw_spared_case(Dice& dice, const IsWanted& spares);

}  // namespace capo::testing
