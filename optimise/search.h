// The search for the best orders: starts, rules that are varied, and walks, in rounds.
//
// First come orders by one rule of construction, then the starts that the caller brings, so that
// there are orders before these are made, and then the rules in every setting. Of many microbatches
// these are compared on a step of fewer, since all of them do the same in the middle. Then four
// searchers take turns, each with rules of its own that it varies at random, and a walk of its own;
// two of them begin with courses that repeat, and look for better ones. A round gives each of them
// the same number of constructions and shifts; between rounds one that has fallen behind for some
// time goes on from the best of all. So
// the result is a function of the problem, the starts, the seed and the number of moves, whatever
// the number of threads; only the clock, or whoever stops the search, can end it within a round,
// and then the result depends on how far it came.
//
// All orders of a small problem are searched as well, if a bound is not reached: before the first
// round, and then again, with four times as many nodes each time, whenever the rounds have made as
// many moves as that takes at most. So both have about half of the time.
//
// A move is a shift, three of a walk that begins cold, or the construction or placing of so many
// tasks that it takes about as long.
// The search ends when nothing better can exist, since the bound is reached.
//
// The search adds up times by itself, as fast as it can. verified() believes what it says of its
// result only if the verifier accepts the orders and the simulator comes to the same makespan, span
// and peaks; anything else is a bug of capo's and an InternalError. Tested by search_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "optimise/construct.h"
#include "optimise/evaluation.h"
#include "optimise/problem.h"
#include "optimise/walk.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capo::optimise {

/// The construction of so many tasks takes about as long as a move.
constexpr std::uint64_t kTasksOfMove = 8;

/// Microbatches of a step that is short, but has all that a long one has.
[[nodiscard]] std::int32_t short_step(const Problem& problem);

struct Start {
  std::string name;
  Orders orders;
  std::optional<Figures> figures;  ///< what the orders come to, if that is known
};

struct SearchOptions {
  Objective objective = Objective::Makespan;
  double bound = 0;  ///< nothing is better than this
  /// Tells a bound that takes longer, and is asked once, when there are orders; none: `bound`
  /// stays.
  std::function<double()> better_bound;
  std::uint64_t seed = 1;
  std::uint64_t moves = 1;  ///< the budget, of all searchers together
  unsigned threads = 1;
  /// All orders of a problem of so many tasks are searched beside, if its bound is not reached
  /// (exhaustive.h).
  std::uint32_t exhaustive_tasks = 0;
  std::function<bool()> stopped = [] { return false; };  ///< asked from every thread
};

enum class Ended : std::uint8_t {
  Proof,    ///< the bound is reached
  Budget,   ///< all moves are made
  Stopped,  ///< by the clock or by the user
};

/// "proof", "moves", "stopped".
[[nodiscard]] std::string_view name_of(Ended ended);

struct Found {
  Orders orders;
  Figures figures;
  std::string from;  ///< the start that it goes back to, or "rules"
  std::uint64_t moves = 0;
  Ended ended = Ended::Stopped;
  std::uint64_t nodes = 0;  ///< of a search of all orders, where nothing was better; 0: none

  /// Whether the search of all orders is a bound. A rank that waited on purpose before its first
  /// task could have a shorter span, which is no order's here, and a bound is not to be above it.
  [[nodiscard]] bool proves(Objective objective) const {
    return nodes > 0 && objective == Objective::Makespan;
  }
};

/// Starts that do not run or do not fit are left out; they are asked for once. `tell` hears of each
/// better find, from one thread. nullopt if no orders were found: one microbatch by itself exceeds
/// the memory limit, or the search was stopped before the first.
[[nodiscard]] std::optional<Found> search(const Problem& problem,
                                          const std::function<std::vector<Start>()>& starts,
                                          const SearchOptions& options,
                                          const std::function<void(const Found&)>& tell);

/// The orders as everybody else sees them, before anybody is shown them. Weight gradients of one
/// call are judged and timed as one, and are not yet one composite in what is returned.
[[nodiscard]] Schedule verified(const Problem& problem, const Orders& orders,
                                const Figures& figures, const SimulationOptions& options);

/// Whether a value is the bound, but for rounding.
[[nodiscard]] bool reaches(double value, double bound);

}  // namespace capo::optimise
