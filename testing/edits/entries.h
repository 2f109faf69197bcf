// What the faults of named orders share: choosing an entry of a schedule, and saying where it is.

#pragma once

#include "core/order/schedule.h"
#include "testing/edits/fault.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace capo::testing::faults {

struct EntryPlace {
  std::size_t rank = 0;
  std::size_t at = 0;  ///< position in the rank's order
};

/// The entries of all ranks' capture orders that `fits`.
[[nodiscard]] std::vector<EntryPlace> entries_that(
    const Schedule& schedule, const std::function<bool(const Entry&, const RankOrder&)>& fits);
/// All compute entries.
[[nodiscard]] std::vector<EntryPlace> compute_entries(const Schedule& schedule);

/// Where messages place an entry: members of a composite share one index.
[[nodiscard]] FaultPlace fault_place(const Schedule& schedule, EntryPlace place);

/// Where the lack of a microbatch's action is reported: at the action before which it belongs (its
/// first for a forward, its weight gradient for a backward), else at its last.
[[nodiscard]] std::optional<std::size_t> lack_of(const RankOrder& rank, const Action& gone);
/// The first entry that is this action.
[[nodiscard]] std::optional<std::size_t> find(const RankOrder& rank, const Action& action);

}  // namespace capo::testing::faults
