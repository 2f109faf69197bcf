// When each task begins at the earliest, and how long the rest behind it takes at least.
//
// The head of a task is the longest of three: what it waits for, over all ranks; all that its own
// rank must have run before it; and, where so many forwards exceed the limit, the backwards that
// must have given up enough, and the least work that gives up so much. Tails are the same from the
// end, without memory. Of the makespan heads count from the first task of all, of the span from the
// rank's own first task, and tails to its last one, since a span knows no other rank's ends.
// Tested by bounds_test.cpp.

#pragma once

#include "optimise/problem.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace capo::optimise {

/// The stages of a rank that one pipeline passes, from the first.
struct Passed {
  std::vector<std::size_t> stages;
  double forward = 0;   // time of a microbatch over all of them
  double backward = 0;  // the input halves
  double weight = 0;
};

/// Heads and tails of all tasks, counted for the makespan or for the span of one rank.
class Windows {
 public:
  /// `rank`: whose span it is; nullopt: the makespan.
  Windows(const Problem& problem, std::optional<std::size_t> rank);

  /// The earliest beginning; minus infinity if the span's rank is not known to have begun.
  [[nodiscard]] double head(TaskNumber task) const { return head_[task]; }
  /// The time that is left behind its end; minus infinity if the span's rank need not wait for it.
  [[nodiscard]] double tail(TaskNumber task) const { return tail_[task]; }
  /// When the rank's first task begins at the earliest.
  [[nodiscard]] double begin(std::size_t rank) const;

 private:
  [[nodiscard]] const Series& series(std::size_t stage, Half half) const {
    return problem_.series[series_of(stage, half)];
  }
  [[nodiscard]] TaskNumber task(std::size_t stage, Half half, std::uint32_t k) const {
    return series_of(stage, half) * m_ + k;
  }
  [[nodiscard]] bool counts(std::size_t rank) const { return !own_ || *own_ == rank; }

  void find_pipelines();
  [[nodiscard]] double after(std::size_t rank, double work) const;
  [[nodiscard]] double first_of_rank(std::size_t rank) const;
  void raise(double& head, const Series& of, std::uint32_t k) const;
  void raise_by_memory(double& head, std::size_t stage, std::size_t rank, std::uint32_t k,
                       double forwards) const;
  void heads_of(std::uint32_t k);
  void backward_heads(std::size_t stage, std::uint32_t k);
  void raise_tail(double& tail, const Series& of, std::uint32_t k) const;
  void tails_of(std::uint32_t k);
  void forward_tail(std::size_t stage, std::uint32_t k, double left);

  const Problem& problem_;
  std::uint32_t m_;
  std::optional<std::size_t> own_;
  std::vector<std::vector<Passed>> passed_;  // by pipeline and rank
  std::vector<std::size_t> pipeline_;        // by stage
  std::vector<double> head_;                 // by task
  std::vector<double> tail_;
};

/// Shows that no orders end by a given time (narrowing.cpp).
class Narrowing {
 public:
  /// `own`: of whose span it is; nullopt: the makespan. The problem outlives it. Whoever stops it
  /// takes what is left of the budget away.
  Narrowing(
      const Problem& problem, std::optional<std::size_t> own,
      std::function<bool()> stopped = [] { return false; });

  /// Narrowing begins with the windows of all tasks, or with nothing but the time by which all is
  /// to end, as whoever checks a bound does.
  enum class From : std::uint8_t { Windows, Nothing };

  /// Whether it is shown that no orders end by then. Takes what it costs from the budget, and says
  /// nothing more when there is none left.
  [[nodiscard]] bool refutes(double until, std::uint64_t& budget, From from = From::Windows);

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
    std::array<double, 3> holds{};  ///< a backward that recomputes what is left of all it takes
    double during = 0;              ///< that one takes so much when it begins
    std::size_t fewer = 0;          ///< most forwards whose backwards have not run
    std::size_t waiting = 0;        ///< most backwards whose weight gradients have not run
    Turns turns;

    /// Returns how many states there are with one count of forwards.
    [[nodiscard]] std::uint64_t states() const { return (fewer + 1) * (waiting + 1); }
  };

  [[nodiscard]] std::optional<Rank> rank_of(std::size_t rank) const;
  enum class Part : std::uint8_t { Early, Late };
  bool settle(int rounds, std::uint64_t& budget);
  bool halve(TaskNumber task, std::uint64_t& budget, bool& changed);
  void begin(double until);
  void begin_with_windows();
  void begin_with_nothing();
  void take_over(std::size_t rank);
  bool hand_back(std::size_t rank);
  bool narrow(Rank& rank);
  void reach(const Rank& rank);
  bool propagate();
  [[nodiscard]] std::size_t at(std::size_t f, std::size_t fewer, std::size_t waiting) const {
    return (f * rows_ + fewer) * width_ + waiting;
  }
  [[nodiscard]] bool has_room(const Rank& rank, std::size_t f, std::size_t b, std::size_t w,
                              double during) const;
  /// Whether the next backward may begin when so many of each kind have run.
  [[nodiscard]] bool may_run_back(const Rank& rank, std::size_t f, std::size_t b,
                                  std::size_t w) const;
  [[nodiscard]] std::size_t forwards_before(std::size_t backwards) const;
  [[nodiscard]] std::size_t earliest_turn(SeriesId series, std::uint32_t k) const;
  [[nodiscard]] std::size_t latest_turn(SeriesId series, std::uint32_t k) const;

  const Problem& problem_;
  std::function<bool()> stopped_;
  std::optional<std::size_t> own_;
  std::optional<Problem> relaxed_;  // found when windows are needed
  std::optional<Windows> windows_;
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
