// What testing/generators declares of modules, made such that it can be run: the generators are for
// rules, which ask for less than an engine does.
//
// Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/sound_declared.h"
#include "testing/truth/truth_case.h"

namespace capo::testing {

/// draw_sound_declared(), its chunks not wired to each other, as TransformerEngine has them.
[[nodiscard]] Declared draw_unwired_declared(Dice& dice);

/// One square shape and one type for all modules, since what one layer makes the next reads; a
/// layernorm-mlp for a transformer-layer, which capo does not run; every input gets a gradient; no
/// composites, since a race between members of one takes place inside their graphs, which no order
/// of launches shows. What a fused module returns beside its weight gradient is a copy: the rule of
/// gradients that are none, G10, looks at weights alone.
void make_runnable(Dice& dice, Declared& declared);

/// Modules without a shape, as faults make them, get that of the first.
void fill_shapes(Declared& declared);

/// The case of a schedule with what is declared of it, read from its text as a user's would be.
[[nodiscard]] TruthCase case_of(Declared declared);

}  // namespace capo::testing
