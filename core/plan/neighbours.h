// The ranks that a rank exchanges tensors with, and how ranks lie to each other by that.
//
//   stages in a loop over ranks 0 to 3     0 - 1 - 2 - 3 - 0, a ring
//   stages in a chain, or down and back    0 - 1 - 2 - 3, a row
//
// Ranks lie in rows and rings if none has more than two neighbours. What a rank hears of a
// neighbour in a row it hears from that neighbour; in a ring word may also come the other way
// round. Tested by neighbours_test.cpp and, through courses, by swept_course_test.cpp.

#pragma once

#include "core/graph/stage_map.h"
#include "core/order/ids.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

class Neighbours {
 public:
  /// The chunk at the other end of a tensor.
  struct OtherEnd {
    std::int32_t neighbour = -1;  ///< its rank's position in ranks(); -1: there is no other rank
    ChunkId chunk;
  };

  Neighbours(const StageMap& map, RankId rank, std::int32_t chunks);

  /// In ascending order.
  [[nodiscard]] const std::vector<RankId>& ranks() const { return ranks_; }
  [[nodiscard]] std::size_t position_of(RankId neighbour) const;
  /// The maker of what a chunk's forward or backward reads of another rank.
  [[nodiscard]] const OtherEnd& maker(ChunkId chunk, bool forward) const {
    return ends_[chunk.index()][forward ? 0 : 1];
  }
  /// The reader of what a chunk's forward or backward makes for another rank.
  [[nodiscard]] const OtherEnd& reader(ChunkId chunk, bool forward) const {
    return ends_[chunk.index()][forward ? 1 : 0];
  }

 private:
  using Ends = std::array<OtherEnd, 2>;  // of the chunk before, and of the one after

  std::vector<RankId> ranks_;
  std::vector<Ends> ends_;  // by chunk
};

/// Whether no rank has more than two neighbours.
[[nodiscard]] bool in_rows_and_rings(const StageMap& map, std::size_t ranks);

/// The rings, each as its ranks in their order around it. Precondition: ranks lie in rows and
/// rings.
[[nodiscard]] std::vector<std::vector<RankId>> rings_of(const std::vector<Neighbours>& of_ranks);

}  // namespace capo
