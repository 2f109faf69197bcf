// Building blocks on a V: six slots a rank, one for each pass, that repeat for every microbatch.
//
//   rank 0   F1 .. .. F2 B2 W2 B1 W1      microbatch 0; microbatch 1 the same six slots later
//   rank 1   .. F1 F2 .. .. B2 W2 ...
//
// From one rank to the next, what goes down stands a fixed number of slots later and what comes up
// one slot earlier, counted round the period; the number may change once on the way. Which blocks
// there are follows appendix A of Qi et al., Pipeline Parallelism with Controllable Memory, arXiv
// 2405.15362. Weight halves take the first slots after their backwards that are left.
//
// A block says nothing of costs, and one that holds too much memory is a block all the same.
// Tested by v_block_test.cpp.

#pragma once

#include "schedules/v_pass.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo::published {

/// A slot for each pass of one rank.
using PassSlots = std::array<std::size_t, kPasses>;

/// How many slots later each next rank runs what goes down.
struct Steps {
  std::size_t before = 1;
  std::size_t after = 1;
  std::size_t ranks_before = 1;  ///< steps that are `before`
};
inline constexpr std::size_t kLongestStep = kPeriod - 1;

/// Slots within the period, for each rank.
using Block = std::vector<PassSlots>;

/// What rank 0 can look like: its first forward in slot 0 and the rest of the chain anywhere.
[[nodiscard]] std::vector<PassSlots> first_ranks();

/// Nothing where two passes of a rank would share a slot.
[[nodiscard]] std::optional<Block> block_of(const PassSlots& first_rank, const Steps& steps,
                                            std::size_t ranks);

/// Where microbatch 0 runs, each pass as early as its input and its slot of the period allow. The
/// slots count from 0, the first forward.
[[nodiscard]] std::vector<PassSlots> first_slots(const Block& block);

/// The most chunks that a rank holds, for microbatches without end.
[[nodiscard]] std::int64_t peak_of(const std::vector<PassSlots>& first_slots);

}  // namespace capo::published
