// From a building block on a V to the order of every rank: repeat the block for each microbatch,
// then rearrange its warm-up and its cool-down, after Qi et al., Pipeline Parallelism with
// Controllable Memory, arXiv 2405.15362, section 3 and appendix.
//
//   repeated      F . F . F f F . f B W f B W ...         six slots a microbatch, gaps at both ends
//   warm-up       as many forwards as the peak allows, then backwards with a forward in between
//   cool-down     the last backwards as tight as their chains allow, weight halves behind them
//   gaps          each takes the nearest later task whose inputs are there, within the peak
//
// Everything here counts slots of equal length, as the published program does; costs come in only
// where the finished grid is timed. A steady block has no gaps, so that its middle stays as it is,
// and a grid of many microbatches is that of fewer with its middle repeated (v_grid.h).
// Tested by v_reordering_test.cpp.

#pragma once

#include "schedules/v_block.h"
#include "schedules/v_grid.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo::published {

struct Reordered {
  /// Nothing where the block cannot be rearranged within its own peak or the limit.
  std::optional<VGrid> grid;
  std::int64_t peak = 0;  ///< in chunks: of the grid, or of how far it came
};

/// `limit` in chunks. A block that holds more than two chunks for every rank is never rearranged:
/// that much keeps every rank busy.
[[nodiscard]] Reordered reorder(const std::vector<PassSlots>& first_slots, std::size_t microbatches,
                                std::int64_t limit);

}  // namespace capo::published
