// Schedules of several ranks that break no rule of shape, dependency or placement: all ranks can
// run their orders together.
//
//   capo 1
//   microbatches 2
//   placement loop
//   rank 0 mixed 1
//   rank 0: F1.1 F1.0 I1.1 B1.0 W1.1
//   ...
//
// Distribution: a placement as in topology.h, of one pipeline: bidirectional ones are not drawn,
// since the oracles that these schedules are for know one pipeline, and PyTorch's tables cannot say
// two (the published schedules that have two are tested by name, in tests/sim/). 1 to 4
// microbatches, each number equally likely. They are named in two of three schedules, and then run
// in any order; else they are counted and run first in, first out. Every chunk delays never or
// always with equal chances, where microbatches are named also mixed, each microbatch then being
// split or not, with equal chances. The step is drawn over all ranks at once: of the actions that
// may come next anywhere, each is equally likely; an idle slot comes before one in ten of those
// that are so drawn, and one in six runs together with one or two (even chances) others that its
// rank could have run next, as far as there are. One rank in four has a replay order, drawn alike
// beside the orders of the others; one in three states its layers, in any of the three forms
// (equally likely) with counts from 1 to 3. One in two that are placed declares how many stages
// there are, everything else is declared. No transfers.
//
// Shrinking: away goes a rank, a microbatch, a replay order, an idle slot, a composite, the layers;
// two neighbours that are not in the order (microbatch, kind, chunk) are swapped; the topology
// becomes chain, for which the actions may have to change places.

#pragma once

#include "core/order/schedule.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/dice.h"

#include <cstdint>
#include <vector>

namespace capo::testing {

[[nodiscard]] Schedule draw_sound_schedule(Dice& dice);
[[nodiscard]] rc::Gen<Schedule> sound_schedule();

/// One that names its microbatches and has no replay order, as a PyTorch table does.
[[nodiscard]] Schedule draw_sound_named_schedule(Dice& dice);
[[nodiscard]] rc::Gen<Schedule> sound_named_schedule();

/// Takes a microbatch out of an order, and dissolves its composites.
void forget_microbatch(std::vector<Entry>& order, std::int32_t microbatch);

}  // namespace capo::testing
