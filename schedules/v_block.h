// Building blocks on a V: six slots a rank, one for each pass, that repeat for every microbatch.
//
//   rank 0   F1 .. .. F2 B2 W2 B1 W1      microbatch 0; microbatch 1 the same six slots later
//   rank 1   .. F1 F2 .. .. B2 W2 ...
//
// From one rank to the next, a pass that goes down stands a fixed number of slots later and a pass
// that comes up one slot earlier, counted round the period; the number may change once on the way.
// The set of blocks follows appendix A of Qi et al., Pipeline Parallelism with Controllable Memory,
// arXiv 2405.15362. Weight halves take the first slots after their backwards that are left.
//
// A block says nothing of costs, and one that holds too much memory is a block all the same. What
// becomes of a block that is repeated and rearranged is in v_reordering.cpp.
// Tested by v_block_test.cpp and v_reordering_test.cpp.

#pragma once

#include "schedules/v_grid.h"
#include "schedules/v_pass.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo::schedules {

/// A slot for each pass of one rank.
using PassSlots = std::array<std::size_t, kPasses>;

/// The number of slots by which each next rank runs the passes that go down later.
struct Steps {
  std::size_t before = 1;
  std::size_t after = 1;
  std::size_t ranks_before = 1;  ///< the first so many steps are `before`, the others `after`
};
inline constexpr std::size_t kLongestStep = kPeriod - 1;

/// Each rank's slots within the period.
using Block = std::vector<PassSlots>;

/// All possible ranks 0: the first forward in slot 0 and the rest of the chain anywhere.
[[nodiscard]] std::vector<PassSlots> first_ranks();

/// The block that begins with this rank; nullopt if two passes of a rank would share a slot.
[[nodiscard]] std::optional<Block> block_of(const PassSlots& first_rank, const Steps& steps,
                                            std::size_t ranks);

/// The slots of microbatch 0, counted from its first forward: each pass runs as early as its input
/// and its slot of the period allow.
[[nodiscard]] std::vector<PassSlots> first_slots(const Block& block);

/// The most chunks that a rank holds while microbatches follow each other without end.
[[nodiscard]] std::int64_t peak_of(const std::vector<PassSlots>& first_slots);

struct Reordered {
  /// nullopt if the block cannot be rearranged within its own peak or the limit.
  std::optional<VGrid> grid;
  /// The most chunks that a rank of the grid holds, or of the grid that was given up.
  std::int64_t peak = 0;
};

/// Repeats a block for each microbatch and rearranges its ends, within a limit in chunks. A block
/// that holds more than two chunks for every rank is never rearranged: that much keeps every rank
/// busy.
[[nodiscard]] Reordered reorder(const std::vector<PassSlots>& first_slots, std::size_t microbatches,
                                std::int64_t limit);

}  // namespace capo::schedules
