// Small schedules of several ranks with their transfers, some of which have been moved: what may
// finish or not, depending on how ranks communicate.
//
//   rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 ...
//   rank 1: recv-F1.1 recv-F1.0 F1.0 ...
//
// Distribution: a sound_named_schedule() of two or more wired ranks, one or two chunks and one to
// three microbatches, with PyTorch's transfers; in one of four all ranks receive as late as they
// can, right before the reader. Then 0 to 6 times, equally likely, one of two happens to a random
// rank, with equal chances: a send and a receive that stand side by side change places; or a random
// transfer goes to a random place of its rank's order, seven times in eight one where a send still
// comes behind what it sends and a receive before its reader. In the end a transfer is fused with
// one right before it once in eight times. Nothing is missing and nothing is there twice.
//
// Shrinking: away goes a microbatch, or a fused pair.

#pragma once

#include "core/order/schedule.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/dice.h"

namespace capo::testing {

[[nodiscard]] rc::Gen<Schedule> moved_transfers();

/// The schedule with its transfers written out, as PyTorch adds them; it is wired and executable.
[[nodiscard]] Schedule with_transfers(const Schedule& schedule);

}  // namespace capo::testing
