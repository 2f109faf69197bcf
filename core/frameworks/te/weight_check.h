// WeightCheck is TE's check that a chunk's backwards get their weight gradients (graph.py:769), in
// linear time.
//
// TE: from a backward on that is not yet cleared, scan the whole order to the right; count further
// backwards of the chunk (this one included) and its weight gradients; where the counts meet, clear
// all backwards counted; if they never meet, raise. Every scan walks entries of one chunk only, and
// the next scan begins behind the last one's end, so walking each chunk's own entries once gives
// the same answers. The check compares counts and never which backward a weight gradient belongs
// to. Tested by predict_test.cpp.

#pragma once

#include "core/order/te_list.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::te {

class WeightCheck {
 public:
  /// The order outlives the check.
  WeightCheck(const std::vector<TeEntry>& order, std::int64_t chunks);

  /// Whether the check passes for the backward of chunk c (from 0) at position i. Positions of one
  /// chunk are asked in ascending order.
  [[nodiscard]] bool passes(std::size_t i, std::size_t c);

 private:
  struct Chunk {
    std::size_t next = 0;           // into positions_: the first entry not before the last question
    std::size_t end = 0;            // into positions_: behind the chunk's last entry
    std::size_t cleared_until = 0;  // backwards before this position are cleared
  };

  const std::vector<TeEntry>& order_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> positions_;  // backwards and weight gradients, chunk by chunk
};

}  // namespace capo::te
