// Finds entries of a schedule that an edit can break, and names their places as messages do.
//
//   entries_that(schedule, is_forward)   ->   {rank 0, at 0}, {rank 0, at 1}, ...
//
// Tested by tests/testing/faults/fault_test.cpp through the faults that are made of it.

#pragma once

#include "core/order/schedule.h"
#include "testing/edits/fault.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace capo::testing {

struct Position {
  std::size_t rank = 0;
  std::size_t at = 0;  ///< position in the rank's order
};

/// The entries of all ranks' capture orders for which `fits` is true.
[[nodiscard]] std::vector<Position> entries_that(
    const Schedule& schedule, const std::function<bool(const Entry&, const RankOrder&)>& fits);
/// All entries that compute.
[[nodiscard]] std::vector<Position> compute_entries(const Schedule& schedule);

/// The place that messages name for an entry: members of a composite share one index.
[[nodiscard]] Place fault_place(const Schedule& schedule, Position place);

/// The entry at which the lack of a microbatch's action is reported: the action before which it
/// belongs (the first for a forward, the weight gradient for a backward), or else the last one.
[[nodiscard]] std::optional<std::size_t> lack_of(const RankOrder& rank, const Action& gone);
/// The first entry that is this action.
[[nodiscard]] std::optional<std::size_t> find(const RankOrder& rank, const Action& action);

}  // namespace capo::testing
