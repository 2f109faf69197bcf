// A home-made generator of schedules that shrinks: what fails a property is shown as a few lines of
// .order text, and is an order still.
//
//   const auto orders = shrinking(rc::gen::apply(my_schedule, ranks, microbatches));
//
// Away go ranks, microbatches, chunks, weight gradients, the replay orders and declarations, while
// the property fails; never a single entry, so that an order which is sound stays sound and what is
// shown is the generator's own mistake. For properties of schedules that are broken on purpose
// there is smaller_schedules(), which takes entries too. Tested by shrinking_test.cpp.

#pragma once

#include "testing/generators/arbitrary_schedule.h"
#include "testing/minimise_shrink.h"

#include <rapidcheck.h>

#include <utility>
#include <vector>

namespace capo::testing {

/// The steps by which a value shrinks: smaller ones, the boldest first; never in a circle.
using SmallerSchedules = std::vector<Schedule> (*)(const Schedule&);

[[nodiscard]] inline rc::Gen<Schedule> shrinking(
    rc::Gen<Schedule> home_made, SmallerSchedules smaller = smaller_sound_schedules) {
  return rc::Gen<Schedule>([home_made = std::move(home_made), smaller](const rc::Random& random,
                                                                       int size) {
    return rc::shrinkable::shrinkRecur(
        home_made(random, size).value(),
        [smaller](const Schedule& schedule) { return rc::seq::fromContainer(smaller(schedule)); });
  });
}

}  // namespace capo::testing
