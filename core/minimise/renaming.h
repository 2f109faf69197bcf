// Rewrites of a schedule in plainer words: other numbers, other neighbours, fewer declarations.
//
//   F2.3 F1.3   ->   F1.0 F2.0
//
// No rewrite deletes an entry. The caller leaves out those that are not smaller by `Size`. Every
// result is settled. Tested by renaming_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace capo {

/// The schedule with two chunks of an unwired rank or two named microbatches exchanged, with its
/// microbatches numbered without gaps, or without composites: one result each.
[[nodiscard]] std::vector<Schedule> renamings(const Schedule& schedule);

/// The schedule with one declaration left out, with a smaller number, or with the name of the
/// topology that places the stages as they are listed. The same chunks delay weight gradients in
/// each.
[[nodiscard]] std::vector<Schedule> with_less_declared(const Schedule& schedule);

/// The schedule with positions `at` and `at + 1` of an order swapped; nullopt if one is in a
/// composite or the swap brings the order no closer to the canonical one.
[[nodiscard]] std::optional<Schedule> with_neighbours_swapped(const Schedule& schedule,
                                                              std::size_t rank, bool replay,
                                                              std::size_t at);

}  // namespace capo
