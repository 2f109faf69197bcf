// Shows that no orders end by a given time, by narrowing the times at which tasks may begin.
//
// Each task begins between its head and the last time at which the rest behind it still fits. A
// rank is looked at by itself: a state is how many forwards, input halves and weight gradients have
// run on it, all chunks together; from state to state the next one of a kind runs, no earlier and
// no later than the next one of its kind may, a forward only if the memory has room, a backward
// only if enough forwards have run. The earliest time at which each state is reached, and the
// latest from which the rest fits, say when the n-th task of a kind may really begin.
//
//   states of a rank with room for two     F F B W F ...     F may begin at 4 at the earliest,
//                                          F B W F B ...     since a W stands before the third F
//
// What that says of single tasks goes on to those that wait for them on other ranks, and ranks are
// looked at again until nothing changes. If a rank has no way from its first to its last state, no
// orders end by that time: a bound (constraint programmers call it a destructive one).
//
// Tasks of one kind on a rank are told apart by their turn alone, whatever their chunk, which
// leaves something out but nothing in: so the ranks whose chunks cost or hold different amounts are
// not looked at. The work is counted in states, and given up above a budget. Tested by
// narrowing_test.cpp.

#pragma once

#include "optimise/problem.h"
#include "optimise/windows.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo::optimise {

class Narrowing {
 public:
  /// `own`: of whose span it is, as of the windows; nullopt: the makespan. Both outlive it.
  Narrowing(const Problem& problem, const Windows& windows, std::optional<std::size_t> own);

  /// Whether it is shown that no orders end by then. Takes what it costs from the budget, and says
  /// nothing more when there is none left.
  [[nodiscard]] bool refutes(double until, std::uint64_t& budget);

  /// With more effort: it refutes halves of the time in which a task may begin as well, as
  /// often as that leaves less time for another.
  [[nodiscard]] bool refutes_by_halves(double until, std::uint64_t& budget);

  /// How many states one look at all ranks has; 0 if no rank can be looked at.
  [[nodiscard]] std::uint64_t states() const { return states_; }

 private:
  /// The times at which the n-th task of each kind on a rank may begin.
  struct Turns {
    std::array<std::vector<double>, 3> first;
    std::array<std::vector<double>, 3> last;
  };
  /// A rank whose tasks of a kind cost and hold alike.
  struct Rank {
    std::array<double, 3> takes{};
    std::array<double, 3> holds{};
    std::size_t fewer = 0;    ///< most forwards whose backwards have not run
    std::size_t waiting = 0;  ///< most backwards whose weight gradients have not run
    Turns turns;

    /// Returns how many states there are with one count of forwards.
    [[nodiscard]] std::uint64_t states() const { return (fewer + 1) * (waiting + 1); }
  };

  [[nodiscard]] std::optional<Rank> rank_of(std::size_t rank) const;
  enum class Part : std::uint8_t { Early, Late };
  bool settle(int rounds, std::uint64_t& budget);
  bool halve(TaskNumber task, std::uint64_t& budget, bool& changed);
  void begin(double until);
  void take_over(std::size_t rank);
  bool hand_back(std::size_t rank);
  bool narrow(Rank& rank);
  void reach(const Rank& rank);
  bool propagate();
  [[nodiscard]] std::size_t at(std::size_t f, std::size_t fewer, std::size_t waiting) const {
    return (f * rows_ + fewer) * width_ + waiting;
  }
  [[nodiscard]] bool has_room(const Rank& rank, std::size_t f, std::size_t b, std::size_t w) const;
  [[nodiscard]] std::size_t forwards_before(std::size_t backwards) const;
  [[nodiscard]] std::size_t earliest_turn(SeriesId series, std::uint32_t k) const;
  [[nodiscard]] std::size_t latest_turn(SeriesId series, std::uint32_t k) const;

  const Problem& problem_;
  const Windows& windows_;
  std::uint32_t m_;
  std::size_t of_kind_;  // tasks of a kind on a rank
  std::size_t passes_;   // chunks of a rank that one microbatch passes
  std::uint64_t states_ = 0;
  std::vector<std::size_t> looked_at_;
  std::vector<Rank> ranks_;        // as looked_at_
  std::vector<SeriesId> by_turn_;  // forwards and backwards, each behind what it waits for
  std::vector<std::size_t> pass_;  // by stage: how many of its rank come before it
  std::vector<double> first_;      // by task: the earliest beginning
  std::vector<double> last_;       // by task: the latest
  double until_ = 0;
  double slack_ = 0;             // more than additions are wrong
  std::size_t rows_ = 0;         // of the states of one count of forwards, by `fewer`
  std::size_t width_ = 0;        // and by `waiting`
  std::vector<double> reached_;  // by state
  std::vector<double> from_;     // by state: the latest time from which the rest fits
};

}  // namespace capo::optimise
