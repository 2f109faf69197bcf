// Where blocks lie that are alive from one moment to another, so that no two which are alive
// together share a byte, in little more memory than the most that is alive at once.
//
// Two ways, the better of which is taken. First to the tightest gap as time goes on (arena.h):
// exact for blocks of one size, and linear. Large blocks first, each at the lowest place that is
// free all the time it is alive: better where sizes differ, in time of blocks times those alive
// beside them, so only for up to kMostSorted of them and only where the first way wastes something.
// Tested by layout_test.cpp; safe_peaks_test.cpp prints what both come to on all shipped
// schedules.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

struct Block {
  std::int64_t bytes = 0;   ///< at least one
  std::uint32_t begin = 0;  ///< moments; alive in [begin, end)
  std::uint32_t end = 0;
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< by block
  std::int64_t total = 0;
};

inline constexpr std::size_t kMostSorted = 100'000;

/// Blocks in the order of their beginnings. `least`: the most that is alive at once.
[[nodiscard]] Placement place(const std::vector<Block>& blocks, std::int64_t least);

}  // namespace capo
