// Tells what orders of very many microbatches come to from orders of few, if a schedule does the
// same again in each further round of microbatches.
//
//   3 rounds   F F B F B F | B B             a round, here one microbatch, is put in at the cut;
//   4 rounds   F F B F B F | B F | B B       if the tasks before it end later by the same on all
//   6 rounds   ... F B F | B F B F B F | B B ranks, so do those of each further round
//
// Times that grow evenly over a few rounds say little: where one rank is a little slower than the
// others, it may be hundreds of microbatches before that rank is what all wait for. Times repeat
// for ever if all that later tasks look at is later by the same: when the last task before the cut
// ends on each rank, and the tasks that those behind it wait for. Since tasks wait only for others
// of their microbatch, that is looked up by microbatches, and not by what waits for what.
//
// Three counts of rounds show what is put in, and that it is put in again and again. That further
// counts do so as well is the schedule's word: whoever asks knows that it is a function of the
// counts. Tested by rounds_test.cpp.

#pragma once

#include "optimise/problem.h"
#include "sim/simulation.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace capo::optimise {

/// A task in the order of its rank.
struct TimedTurn {
  std::uint32_t what = 0;  ///< all that is to be said of it but for its microbatch
  std::int32_t microbatch = 0;
  double end = 0;
};

/// The tasks of each rank.
using TimedOrders = std::vector<std::vector<TimedTurn>>;

/// Precondition: the orders run, as evaluate() tells.
[[nodiscard]] TimedOrders timed_orders(const Problem& problem, const Orders& orders);
[[nodiscard]] TimedOrders timed_orders(const Simulation& simulation);

/// Returns the time by which each round more than `more` has makes all ranks later, which have one
/// round more than those of `few`; `most` has as many again or more. nullopt if they do not tell.
[[nodiscard]] std::optional<double> later_by_round(const TimedOrders& few, const TimedOrders& more,
                                                   const TimedOrders& most);

}  // namespace capo::optimise
