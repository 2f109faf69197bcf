// Orders that repeat: one microbatch's course through all ranks, and the next one's a period later.
//
//   period 4, rank 0:  F(0) at 0, B(0) at 6, W(0) at 7     ->  F0 F1 B0 W0 F2 B1 W1 F3 ...
//
// A search among orders of many microbatches looks at all of them, where those in the middle do the
// same again and again. Here the search is for the course of one: each task begins at the first
// time from which on the rank is free in every period, some time after what it waits for has ended;
// how long after is what the search varies, by simulated annealing, towards a course whose ranks
// hold no more than the limit. If there is one, the period becomes shorter. What that costs does
// not depend on the number of microbatches.
//
// The orders are the ranks' tasks by the times of all courses. They hold no more than in the
// middle, where all courses that are on their way together are. Their times are left to the
// evaluation, and so are the beginning and the end, where ranks wait for each other less than the
// period says: a walk makes these shorter.
//
// Repeating the course of a microbatch is the idea of controllable memory (Qi et al.), whose
// courses are written down for equal costs, and of modulo scheduling (Rau). Bidirectional
// placements are left out. Tested by periods_test.cpp.

#pragma once

#include "optimise/chance.h"
#include "optimise/problem.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace capo::optimise {

class Periods {
 public:
  /// The problem outlives it.
  Periods(const Problem& problem, std::uint64_t seed);

  /// Tries so many courses and hands over orders whenever there is a better course. These run, and
  /// keep to the memory limit.
  void run(std::uint64_t courses, const std::function<bool()>& stopped,
           const std::function<void(const Orders&)>& found);

  /// The shortest period so far; infinite if there is none.
  [[nodiscard]] double period() const { return shortest_; }

 private:
  /// Waiting times and places of weight gradients, which are varied.
  struct Delays {
    std::vector<double> wait;  ///< by turn: behind what it waits for
    std::vector<bool> eager;   ///< by stage: its weight gradient takes its time before later tasks
  };
  /// A time in every period in which a rank is not free.
  struct Taken {
    double begin;
    double takes;
  };
  struct Cost {
    double excess = 0;  ///< what ranks hold above the limit, in forwards, and what finds no time
    double flight = 0;  ///< from the first beginning of the course to its last end
  };

  Cost place(const Delays& delays);
  [[nodiscard]] std::optional<double> free_from(std::size_t rank, double ready, double takes) const;
  bool put(SeriesId series, double ready);
  [[nodiscard]] double held_at_most(std::size_t rank) const;
  void vary(Delays& delays);
  void offer(const Cost& cost, const std::function<void(const Orders&)>& found);
  void next_period();
  [[nodiscard]] double weighed(const Cost& cost) const;
  [[nodiscard]] Orders orders() const;

  const Problem& problem_;
  Chance chance_;
  std::vector<SeriesId> by_turn_;  // forwards and backwards on the way of a microbatch
  std::vector<double> begin_;      // by series
  std::vector<std::vector<Taken>> taken_;
  Delays delays_;
  double work_ = 0;  // of the rank that has most: no period is shorter
  double period_ = 0;
  double shortest_;
  double offered_;          // what the last orders were expected to take
  double too_short_;        // no course was found for this period
  std::uint64_t patience_;  // courses for one period
};

// Orders of more or fewer microbatches (resized.cpp).

/// Makes orders for the microbatches of `to`, which differs from `from` in these alone, from orders
/// that run, by repeating or leaving out the part that runs about `share` of the makespan behind
/// the beginning. The part has `part` microbatches, of which the difference is a multiple. nullopt
/// if some rank has no such part, or if the orders would not run.
[[nodiscard]] std::optional<Orders> resized(const Problem& from, const Orders& orders,
                                            const Problem& to, std::int32_t part, double share);

/// The best of these for parts of different length, as far as little more tells; nullopt if there
/// is none.
[[nodiscard]] std::optional<Orders> lengthened(const Problem& from, const Orders& orders,
                                               const Problem& to);

/// A step of so many microbatches less that differences are multiples of many parts, from `least`
/// on; nullopt if it would not be much shorter.
[[nodiscard]] std::optional<Problem> shortened(const Problem& problem, std::int32_t least);

}  // namespace capo::optimise
