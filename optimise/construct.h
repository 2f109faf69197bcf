// Orders made from nothing, by rules of priority: at each decision a rank looks at what it may run.
//
//   rank 2 at 14:  B(s2,0) arrives at 15, W(s2,1) waits since 9, F(s2,4) would exceed the memory
//                  patience 1: W runs now and delays B by at most its own time; patience 0: it does
//                  not, unless it ends until 15
//
// Ranks decide in the order of time, so that whatever arrives before a decision is known at it, and
// so is what other ranks have begun and will arrive soon: that is the lookahead. A task of a lower
// class runs before one of a higher class only if it delays that one by no more than the patience.
// Forwards are run only within the memory limit, or a share of it by rank, and never such that the
// oldest microbatch on its way could not finish: what its next chunks on the rank take is kept
// free. So the limit is kept and nothing waits for ever, under every rule, unless one microbatch by
// itself exceeds the limit.
//
// If chunks recompute, backwards take memory as well, and a rank may have to wait with one until
// a weight gradient has run. A forward or backward then runs only if behind it every older
// microbatch of the rank could still finish, one after the other by age (the banker's algorithm
// with that order). The oldest one therefore always goes on, on every rank: what it takes has been
// kept free, and its weight gradients wait for nothing.
//
// The rules are our own; that an idle rank fills its gaps with weight gradients, and lets one delay
// a backward where waiting would cost more, is the idea of zero-bubble schedules (Qi et al.).
// Tested by construct_test.cpp.

#pragma once

#include "optimise/problem.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::optimise {

struct Rules {
  /// The class that runs first of those that may begin at once.
  enum class First : std::uint8_t {
    Backward,
    Forward,
    InTurn,  ///< a forward behind a backward, a backward behind a forward
  };

  First first = First::Backward;
  bool deep_forwards = true;  ///< of several forwards, the one of the later stage; else the earlier
  bool deep_backwards = true;  ///< of several backwards likewise
  /// A weight gradient runs directly behind its backward; else where nothing else may run, or where
  /// a forward needs the room that it makes.
  bool eager_weights = false;
  /// A call of weight gradients is filled once it has begun, and eager ones wait until they fill
  /// it.
  bool full_calls = false;
  double patience = 0;  ///< for a delay, in shares of the time of the task that delays
  /// Each rank uses this share of the memory limit, or of what it could hold at all; empty: all.
  std::vector<double> shares;
};

/// nullopt if one microbatch by itself exceeds the memory limit.
[[nodiscard]] std::optional<Orders> construct(const Problem& problem, const Rules& rules);

/// The reason why there are no orders at all, a sentence; nullopt if construct() makes some.
[[nodiscard]] std::optional<std::string> why_impossible(const Problem& problem);

/// Rules that differ in one thing or another, the most promising first.
[[nodiscard]] std::vector<Rules> rule_settings(const Problem& problem);

}  // namespace capo::optimise
