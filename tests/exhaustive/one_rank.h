// Named orders of one rank, made of tokens: what is captured, and what is replayed in its stead.
//
//   OneRank rank({.chunks = 1, .microbatches = 2}, {Kind::Forward, Kind::Backward});
//   rank.capture({0, 0, 1, 1});        F1.0 F1.1 B1.0 B1.1
//
// There is no text. Each entry's place is its own number, so that a finding says whose it is.

#pragma once

#include "core/order/input.h"
#include "tests/exhaustive/orders.h"

#include <cstddef>
#include <vector>

namespace capo::exhaustive {

/// F, B and, if the size has weight gradients, W.
[[nodiscard]] std::vector<Kind> computations_of(const Size& size);

class OneRank {
 public:
  /// Token kind * chunks + chunk - 1 stands for the kind at that place of the list.
  OneRank(const Size& size, std::vector<Kind> kinds);

  /// Replay runs in this order too.
  void capture(const std::vector<std::size_t>& tokens);
  /// Replay runs in this order; what is captured stays.
  void replay(const std::vector<std::size_t>& tokens);

  [[nodiscard]] RankOrder& rank() { return input.schedule.ranks.front(); }
  [[nodiscard]] std::vector<Entry>& replayed() {
    return rank().replay ? *rank().replay : rank().order;
  }

  Input input;

 private:
  [[nodiscard]] std::vector<Entry> entries_of(const std::vector<std::size_t>& tokens,
                                              std::uint32_t first_place) const;

  Size size_;
  std::vector<Kind> kinds_;
};

}  // namespace capo::exhaustive
