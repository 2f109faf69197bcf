// Bounds below which no orders of a problem get, for any placement, costs and memory limit.
//
// Four arguments, the first three for every rank:
//
//   machine   a rank runs one task at a time, none before its head, and behind each its tail still
//             follows: the shortest such sequence that may be interrupted (Jackson's rule: of what
//             may begin, the task with the longest tail) is no longer than any that may not
//   memory    what a microbatch takes times how long it is held at least, over all microbatches, is
//             at most the limit times the rank's time (Little's law); what is made again is held
//             for the time of its backward
//   path      one microbatch takes its way to the last stage and back
//   narrowing what is above the largest of these, as long as narrowing.cpp refutes it
//
// Heads and tails are those of windows.h, of the problem in which nothing is made again (relaxed()
// of problem.h).
//
// If weight gradients are called several at a time, each takes its share of the best call here
// (with_least_weights() of calls.h).
//
// sim/bounds.cpp has closed forms for costs that are the same everywhere, which also count the
// windows in which a full rank idles again and again; the larger of both is taken. A
// bound is rounded down by a millionth of a millionth, which is more than its additions are wrong.
// Tested by bounds_test.cpp against the proven optima.

#pragma once

#include "optimise/evaluation.h"
#include "optimise/problem.h"
#include "optimise/tails.h"
#include "sim/simulation.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capo::optimise {

struct RankCosts;  // of placements.h

struct LowerBounds {
  Bound makespan;
  Bound span;
};

[[nodiscard]] const Bound& bound_of(const LowerBounds& bounds, Objective objective);

/// Raises the bound of the objective to what a search of all orders found to be the best.
void raise_to(LowerBounds& bounds, Objective objective, double value);

/// The share of a bound by which orders exceed it; 0 if there is no bound.
[[nodiscard]] double gap_of(double value, double bound);

/// States that narrowing looks at for each objective, at most: about a second.
constexpr std::uint64_t kStatesOfBounds = 80'000'000;

/// Returns a time of which all times of the problem are multiples, and so is the makespan; 0 if
/// there is none among decimals of six places.
[[nodiscard]] double unit_of(const Problem& problem);

/// Takes longer the more states there are; if it is stopped, it has less to say.
[[nodiscard]] LowerBounds lower_bounds(
    const Problem& problem, std::uint64_t states = kStatesOfBounds,
    const std::function<bool()>& stopped = [] { return false; });

/// Shows that nothing ends by `refuted` units, and as all times are whole units, that nothing ends
/// before one more.
struct Refuted {
  double unit = 0;
  std::uint64_t units = 0;

  [[nodiscard]] double bound() const { return static_cast<double>(units + 1) * unit; }
};

/// Narrows from nothing and without halves of times, as whoever checks a bound does, and returns
/// the latest time above a bound that this refutes; nullopt if there is none, if times have no
/// unit, or if there are too many states to be checked by a plain program.
[[nodiscard]] std::optional<Refuted> refuted_plainly(const Problem& problem,
                                                     std::optional<std::size_t> own, double above);

/// Says what a bound rests on: "the work of rank 3 and what must come before and behind
/// it". Knows the closed forms of sim/bounds.cpp as well, and "exhaustive", the search of all
/// orders.
[[nodiscard]] std::string words_for(const Bound& bound);

/// Shows the bound of an objective to whoever trusts no line of capo's, and what orders come to.
struct Certificate {
  double shown = 0;  ///< less than the bound, if it rests on what certificates do not show
  std::string text;  ///< JSON, which tools/check_bound.py checks
};
/// `nodes`: of a search of all orders, which found nothing better; 0: there was none. The
/// certificate states them and shows what `bounds` rest on. `any`: the least costs of ranks, if the
/// bounds are of any placement.
[[nodiscard]] Certificate certificate_of(const Problem& problem, Objective objective,
                                         const LowerBounds& bounds, const Orders& orders,
                                         const Figures& figures, std::uint64_t nodes = 0,
                                         const RankCosts* any = nullptr);

}  // namespace capo::optimise
