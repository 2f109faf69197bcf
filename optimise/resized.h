// Orders of more or fewer microbatches, made from orders that do the same again and again.
//
//   4 microbatches   F0 F1 [B0 F2] B1 F3 B2 B3        the part in brackets has one of each series
//   6 microbatches   F0 F1 [B0 F2] [B1 F3] [B2 F4] B3 F5 B4 B5
//
// A rank's order has a part with the same number of tasks of each of its series, by which it can be
// made longer or shorter without any rank's order lacking a task: repeated, every task in it stands
// to its own microbatch as before, so that the rank holds no more. Such a part is looked for on
// every rank, where the rank is at the same time; whether ranks then wait for each other, and how
// long it all takes, is for the evaluation to tell. Tested by resized_test.cpp.

#pragma once

#include "optimise/problem.h"

#include <cstdint>
#include <optional>

namespace capo::optimise {

/// Makes orders for the microbatches of `to`, which differs from `from` in these alone, from orders
/// that run, by repeating or leaving out the part that runs about `share` of the makespan behind
/// the beginning. The part has `part` microbatches, of which the difference is a multiple. nullopt
/// if some rank has no such part, or if the orders would not run.
[[nodiscard]] std::optional<Orders> resized(const Problem& from, const Orders& orders,
                                            const Problem& to, std::int32_t part, double share);

/// The best of these for parts of different length; nullopt if there is none.
[[nodiscard]] std::optional<Orders> lengthened(const Problem& from, const Orders& orders,
                                               const Problem& to);

/// A step of so many microbatches less that differences are multiples of many parts, from `least`
/// on; nullopt if it would not be much shorter.
[[nodiscard]] std::optional<Problem> shortened(const Problem& problem, std::int32_t least);

}  // namespace capo::optimise
