// The steps of minimise() as a rapidcheck shrinker, so that a property over schedules that fails
// shows a small schedule.
//
//   rc::Gen<Schedule> broken() { return generator(draw_broken, smaller_schedules); }
//
// For properties of schedules that may be broken in any way: a sound one loses single entries here,
// and is sound no longer. Tested by minimise_shrink_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <vector>

namespace capo::testing {

/// Schedules that are smaller by one step, the boldest step first: half of the ranks, microbatches
/// or chunks goes, or one of them, the weight gradients, an entry, a declaration, or two entries
/// swap. All are settled and smaller by `Size`, so asking again does not go in circles.
[[nodiscard]] std::vector<Schedule> smaller_schedules(const Schedule& schedule);

/// Leaves out single entries, swaps, and steps that leave a rank nothing to compute or a replay
/// order other halves than the capture has. A sound schedule without transfers stays sound.
[[nodiscard]] std::vector<Schedule> smaller_sound_schedules(const Schedule& schedule);

}  // namespace capo::testing
