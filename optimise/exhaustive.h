// Exhaustive search of small problems: the best orders there are, or the proof that none is better.
//
//   rank 0 has run F F, rank 1 nothing      rank 0 next: F if it fits, or it waits for its B
//
// Orders are built task by task. The rank that is free first is asked what it runs next: each task
// that it could begin, or one whose input is not made yet, for which it then waits until another
// rank has made it. So each orders come about in one way alone. A branch is left
//
//   - if what is left of a rank takes too long: the shortest sequence of its tasks that may be
//     interrupted (jackson.h), each between what it waits for, as far as that is known, and its
//     tail
//   - if the same tasks have run, and ranks wait for the same, and nothing is earlier than it was
//     another time
//   - if a rank waits although another task fits in front: that one may run there, and nothing
//     becomes later. A forward, or a backward that recomputes, would take memory earlier, so that
//     it is no such task where memory is limited; neither is the first task of a rank, with which
//     its span begins
//
// "Better" is by one unit, if all times are multiples of one. It does not know calls of several
// weight gradients. It is a function of problem, orders and the number of nodes. Tested by
// exhaustive_test.cpp against all orders of tiny problems and proven optima.

#pragma once

#include "optimise/evaluation.h"
#include "optimise/problem.h"
#include "optimise/tails.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace capo::optimise {

/// Most tasks that it takes.
constexpr std::uint32_t kMostTasksOfExhaustion = 250;

struct Exhausted {
  bool complete = false;  ///< every branch was looked at or left: nothing is better
  std::uint64_t nodes = 0;
  std::optional<Orders> better;  ///< the best that was found below the given value
};

/// Looks for orders whose objective is below `value`, in at most so many nodes. Precondition: no
/// calls of several weight gradients.
[[nodiscard]] Exhausted exhaust(
    const Problem& problem, Objective objective, double value, std::uint64_t nodes,
    const std::function<bool()>& stopped = [] { return false; });

}  // namespace capo::optimise
