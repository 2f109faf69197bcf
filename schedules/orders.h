// The orders of all ranks as the generators of published schedules make them, and the settings that
// they are made from.
//
//   rank 0:  F0.0 F1.0 F0.1 B0.1 W0.1 ...    kind, microbatch, chunk: as the authors print them
//
// A generator is a function from a Setting to PublishedOrders and knows nothing else of capo: its
// result becomes a Schedule in catalogue.h, and the verifier judges it like any other.
// Microbatches are numbered from 0 and per pipeline: a bidirectional schedule has two, each with
// its own microbatches 0 to M/2 - 1.

#pragma once

#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace capo::schedules {

/// The times of one chunk's tasks, in any unit; `transfer` passes between ranks and occupies
/// neither.
struct Costs {
  double forward = 1;
  double backward = 1;  ///< the input-gradient half
  double weight = 1;
  double transfer = 0;

  friend bool operator==(const Costs&, const Costs&) = default;
};

/// Each task of one chunk adds so much to the memory that its rank holds, in any unit; the sum is
/// 0.
struct Memory {
  double forward = 1;
  double backward = 0;
  double weight = -1;

  friend bool operator==(const Memory&, const Memory&) = default;
};

struct Setting {
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;
  std::int32_t chunks = 1;  ///< each rank holds so many
  Costs costs;              ///< looked at by searches alone
  /// Each rank's times if ranks differ, else empty; all links take the transfer of the first rank.
  std::vector<Costs> rank_costs;
  Memory memory;  ///< looked at by searches alone
  /// A rank may hold so much, in the unit of `memory`.
  double memory_limit = std::numeric_limits<double>::infinity();
  unsigned threads = 1;  ///< of searches; they change the speed alone

  [[nodiscard]] const Costs& costs_of(std::int32_t rank) const {
    return rank_costs.empty() ? costs : rank_costs[RankId(rank).index()];
  }
  [[nodiscard]] double transfer() const { return costs_of(0).transfer; }
};

struct Move {
  Kind kind = Kind::Forward;  ///< Forward, Backward (whole), BackwardInput or BackwardWeight
  std::int32_t chunk = 1;     ///< counted from 1 on the rank
  std::int32_t microbatch = 0;
  bool joins = false;  ///< runs together with the move before it

  friend bool operator==(const Move&, const Move&) = default;
};

/// One order for each rank.
using PublishedOrders = std::vector<std::vector<Move>>;

}  // namespace capo::schedules
