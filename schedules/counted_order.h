// One rank's order under construction, for schedules that take the microbatches of a chunk first
// in, first out: the generator says which chunk comes next, this class which microbatch.
//
//   forward(1); forward(1); backward_input(1); backward_weight();      F0.0 F1.0 B0.0 W0.0
//
// It counts and nothing more: the generator sees to it that a forward stands before its backward,
// and the verifier judges it. The order of a loop's rank, which passes its chunks in groups of
// microbatches, is made here as well, since Megatron-LM's and PyTorch's tables are both made of it.
// Tested by counted_order_test.cpp and interleaved_test.cpp.

#pragma once

#include "schedules/orders.h"

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace capo::schedules {

class CountedOrder {
 public:
  /// The rank has chunks 1 to `chunks`.
  explicit CountedOrder(std::int32_t chunks);

  void forward(std::int32_t chunk);
  void backward(std::int32_t chunk);  ///< whole
  void backward_input(std::int32_t chunk);
  /// Runs the weight half of the backward that has waited longest for it, in any chunk.
  void backward_weight();
  /// Runs the weight half that has waited longest in this chunk.
  void backward_weight(std::int32_t chunk);
  /// Runs a forward and, together with it, a whole backward.
  void overlap(std::int32_t forward_chunk, std::int32_t backward_chunk);

  /// Whether an input half still has its weight half to come.
  [[nodiscard]] bool owes_weights() const { return !owed_.empty(); }

  [[nodiscard]] std::vector<Move> take() && { return std::move(moves_); }

 private:
  struct Next {
    std::int32_t forward = 0;
    std::int32_t backward = 0;
  };
  Next& next(std::int32_t chunk);
  void pay(const std::deque<Move>::iterator& input_half);

  std::vector<Next> next_;  ///< microbatches, indexed by chunk - 1
  std::deque<Move> owed_;   ///< input halves without a weight half, oldest first
  std::vector<Move> moves_;
};

/// The order in which a rank visits its chunks: microbatches go in groups, and a group is through
/// one chunk before it enters the next. The last group takes the remaining microbatches and may be
/// smaller.
struct MicrobatchGroups {
  std::int32_t microbatches = 1;
  std::int32_t chunks = 1;
  std::int32_t group = 1;

  /// The chunk of the rank's `step`-th forward, from 0.
  [[nodiscard]] std::int32_t forward_chunk(std::int64_t step) const;
  /// Backwards visit the chunks of each group the other way round.
  [[nodiscard]] std::int32_t backward_chunk(std::int64_t step) const {
    return chunks + 1 - forward_chunk(step);
  }
  /// The number of a rank's forwards, and of its backwards.
  [[nodiscard]] std::int64_t steps() const { return std::int64_t{microbatches} * chunks; }
};

/// A rank runs `ahead` forwards, at most groups.steps(), then a forward and a whole backward in
/// turn, then the remaining backwards.
[[nodiscard]] std::vector<Move> interleaved_rank(const MicrobatchGroups& groups,
                                                 std::int64_t ahead);

}  // namespace capo::schedules
