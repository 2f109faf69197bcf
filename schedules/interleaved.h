// The schedules of a loop: chunk c of rank r is stage (c-1)p + r, so that a microbatch passes all
// ranks once for every chunk.
//
//   1f1b-interleaved, 2 ranks, 2 chunks, 4 microbatches, groups of 2; rank 0 runs 4 ahead
//   F0.0 F1.0 F0.1 F1.1 | F2.0 BW0.1 F3.0 BW1.1 F2.1 BW0.0 F3.1 BW1.0 | BW2.1 BW3.1 BW2.0 BW3.0
//
// Costs and memory are not looked at.
//
// Interleaved 1F1B: Narayanan et al., arXiv 2104.04473, with groups as Megatron-LM has them since;
// vpp.py of sail-sg/zero-bubble-pipeline-parallelism has groups of p only. Looped BFS:
// Lamy-Poirier, arXiv 2211.05953. Tested by interleaved_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::published {

/// In which order a rank visits its chunks: microbatches go in groups, and a group is through one
/// chunk before it enters the next. The last group is what is left over, and may be smaller.
struct MicrobatchGroups {
  std::int32_t microbatches = 1;
  std::int32_t chunks = 1;
  std::int32_t group = 1;

  /// Chunk of the forward that is the rank's `step`-th, from 0.
  [[nodiscard]] std::int32_t forward_chunk(std::int64_t step) const;
  /// Backwards visit the chunks of each group the other way round.
  [[nodiscard]] std::int32_t backward_chunk(std::int64_t step) const {
    return chunks + 1 - forward_chunk(step);
  }
  /// Forwards of a rank, and backwards.
  [[nodiscard]] std::int64_t steps() const { return std::int64_t{microbatches} * chunks; }
};

/// A rank that runs `ahead` forwards, at most groups.steps(), then a forward and a whole backward
/// in turn, then the backwards that are left.
[[nodiscard]] std::vector<Move> interleaved_rank(const MicrobatchGroups& groups,
                                                 std::int64_t ahead);

/// Megatron-LM's interleaved 1F1B: rank r of p with v chunks and groups of g runs
/// 2(p-1-r) + (v-1)g forwards ahead (all of them if there are no more), then a forward and a whole
/// backward in turn. It holds at most one more chunk's activations than it runs ahead. Accepted is
/// p <= g <= m where groups come out even or the last one is no smaller than p; without a group, g
/// is p. One chunk makes it 1F1B with twice as many forwards ahead.
[[nodiscard]] Result<PublishedOrders, std::string> interleaved_one_f_one_b(
    const Setting& setting, std::optional<std::int32_t> group = std::nullopt);

/// All forwards chunk by chunk, then all backwards, whole, from the last chunk to the first;
/// microbatches ascend throughout. With one chunk it is GPipe.
[[nodiscard]] Result<PublishedOrders, std::string> looped_bfs(const Setting& setting);

}  // namespace capo::published
