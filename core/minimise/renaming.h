// The same schedule in plainer words: other numbers, other neighbours, less said beside the orders.
//
//   F2.3 F1.3   ->   F1.0 F2.0
//
// None of this deletes anything. What is not smaller by `Size` is for the caller to leave out.
// Every result is settled. Tested by renaming_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace capo {

/// Two chunks of a rank that is not wired change names, or two named microbatches; microbatches
/// without gaps; no composites.
[[nodiscard]] std::vector<Schedule> renamings(const Schedule& schedule);

/// Each leaves out one declaration, or states a smaller number, or the name of the topology that
/// places the stages as they are listed. Who delays weight gradients stays the same.
[[nodiscard]] std::vector<Schedule> with_less_declared(const Schedule& schedule);

/// Positions `at` and `at + 1` of an order; nothing where one is in a composite.
[[nodiscard]] std::optional<Schedule> with_neighbours_swapped(const Schedule& schedule,
                                                              std::size_t rank, bool replay,
                                                              std::size_t at);

}  // namespace capo
