// Schedules with the modules that their layers are, declared so that TransformerEngine's captures
// keep every gradient: nothing to find under gradients/ and capture/, with plan te.
//
// Distribution: the schedule is a sound_named_schedule() of which no chunk delays only some of its
// weight gradients (C08); in one of two each chunk is reduced right behind its last gradient. Four
// modules as in sound_module.h, two that delay for chunks that have their weight gradients apart
// and two for the others, each chunk being one that fits, with equal chances. No operand is a
// shared buffer.
//
// Plan te is what the rules of gradients and capture ask for, and no more: every other order here
// breaks rules of races and memory under it (E01, B03 to B05). sound_planned.h has those that break
// none.
//
// Shrinking: a microbatch goes. Tested by sound_declared_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/rules/check_options.h"
#include "testing/generators/dice.h"

#include <iosfwd>

namespace capo::testing {

struct Declared {
  Schedule schedule;
  CheckOptions options;
  bool table = false;  ///< it is written as a PyTorch table, which a fault may ask for
};

[[nodiscard]] Declared draw_sound_declared(Dice& dice);
[[nodiscard]] rc::Gen<Declared> sound_declared();

/// For rapidcheck: .order text, with what is declared in comments above it.
void showValue(const Declared& declared, std::ostream& out);

}  // namespace capo::testing
