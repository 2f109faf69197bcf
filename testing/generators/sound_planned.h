// Schedules under TransformerEngine's plan whose layers read the shared buffers themselves, in
// orders that give every buffer time: nothing to find under buffers/, streams/ and replay/.
//
//   capo 1
//   placement chain
//   rank 0 delayed 2
//   rank 0: F1.1 F2.1 F1.0 B2.1 W2.1 B1.1 F2.0 B2.0 W2.0 B1.0
//
// Distribution: 1 to 3 chunks, the same on every rank, and 1 to 4 microbatches, each number equally
// likely; one schedule in two is one rank whose chunks follow each other, the others are 1 to 3
// ranks (equally likely) of chunks that are not wired. Each chunk always delays its weight gradient
// or never does, with equal chances. Of what may come next each is equally likely, but a weight
// gradient comes right behind its backward, and in a chain the backwards of one microbatch come one
// behind the other. All layers are bf16 linears of one shape, with as many columns behind as in
// front, so that all tensors look alike.
//
// Shrinking: a microbatch goes. Tested by sound_planned_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/sound_declared.h"

namespace capo::testing {

[[nodiscard]] Declared draw_sound_planned(Dice& dice);
[[nodiscard]] rc::Gen<Declared> sound_planned();

}  // namespace capo::testing
