// One rank's order under construction, for schedules that take the microbatches of a chunk first
// in, first out: the generator says which chunk comes next, this class which microbatch.
//
//   forward(1); forward(1); backward_input(1); backward_weight();      F0.0 F1.0 B0.0 W0.0
//
// It counts and nothing more: whether a forward stands before its backward is for the generator to
// see to, and for the verifier to judge. Tested by counted_order_test.cpp.

#pragma once

#include "schedules/orders.h"

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace capo::published {

class CountedOrder {
 public:
  /// Of a rank with chunks 1 to `chunks`.
  explicit CountedOrder(std::int32_t chunks);

  void forward(std::int32_t chunk);
  void backward(std::int32_t chunk);  ///< whole
  void backward_input(std::int32_t chunk);
  /// Of the backward that has waited longest for its weight half, whatever its chunk.
  void backward_weight();
  /// The same among those of one chunk.
  void backward_weight(std::int32_t chunk);
  /// A forward and, run together with it, a whole backward.
  void overlap(std::int32_t forward_chunk, std::int32_t backward_chunk);

  /// Input halves whose weight half is still to come.
  [[nodiscard]] bool owes_weights() const { return !owed_.empty(); }

  [[nodiscard]] std::vector<Move> take() && { return std::move(moves_); }

 private:
  struct Next {
    std::int32_t forward = 0;
    std::int32_t backward = 0;
  };
  Next& next(std::int32_t chunk);
  void pay(const std::deque<Move>::iterator& input_half);

  std::vector<Next> next_;  ///< microbatch, by chunk - 1
  std::deque<Move> owed_;   ///< input halves without a weight half, oldest first
  std::vector<Move> moves_;
};

}  // namespace capo::published
