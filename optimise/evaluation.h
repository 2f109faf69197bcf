// When every task of given orders runs, from nothing and after a change of one order.
//
// evaluate() takes each rank's tasks in turn until one waits for another rank, and goes on there
// when that has run: every task is looked at once. Evaluation keeps the times of all tasks, and
// re-evaluates after a shift of one task within its rank only those whose end changes:
//
//   rank 1:  F F B W F B W        shift(1, 3, 5)  ->  F F B F B W W
//
// For that it keeps an order of all tasks in which each stands behind what it waits for, at first
// that of their beginnings. A shift later puts the shifted task, and what waits for it so far,
// behind the tasks that it passes; if one of these waits for it over other ranks, the orders would
// wait for each other, and nothing changes (Pearce and Kelly's way, for one rank's chain at a
// time). Tasks whose end may have changed are bits over that order: each is looked at once, when
// all that it waits for is final, and one whose end is the same as before wakes nobody.
//
// If weight gradients are called several at a time (calls.h), a shift also gives places in calls
// anew, from its first place to the end of the run of weight gradients behind its last one.
//
// Times are added up as the simulator does, begin + duration and end + lag, and so are amounts of
// memory along each order, so that makespan, span and peaks equal the simulator's to the last bit.
// A shift that would exceed the memory limit is refused. It costs what lies between its two places,
// over all ranks, and what ends at another time; a test holds it against evaluate() on random
// moves. Tested by evaluation_test.cpp; bench/optimise_bench.cpp prints its speed.

#pragma once

#include "optimise/calls.h"
#include "optimise/problem.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo::optimise {

/// The times and peaks that orders come to.
struct Figures {
  double makespan = 0;
  double span = 0;
  std::vector<double> peaks;  ///< by rank

  [[nodiscard]] double highest_peak() const;

  friend bool operator==(const Figures&, const Figures&) = default;
};

/// nullopt if orders lack a task, put one before what it waits for on its own rank, or wait for
/// each other. Memory limits are not looked at: Figures tell.
[[nodiscard]] std::optional<Figures> evaluate(const Problem& problem, const Orders& orders);

/// When each task ends, by task. Precondition: the orders run, as evaluate() tells.
[[nodiscard]] std::vector<double> ends_of(const Problem& problem, const Orders& orders);

/// Whether no rank exceeds the problem's limit.
[[nodiscard]] bool fits(const Problem& problem, const Figures& figures);

class Evaluation {
 public:
  /// Precondition: the orders run, as evaluate() tells, and keep to the memory limit. The problem
  /// outlives the evaluation.
  Evaluation(const Problem& problem, const Orders& orders);

  /// Moves the task at position `from` of a rank's order to position `to`. Returns false, with
  /// nothing changed, if it would pass what it waits for or what waits for it, or another task of
  /// its series, or exceed the memory limit.
  bool shift(std::size_t rank, std::uint32_t from, std::uint32_t to);
  /// Takes the last shift back; it can be taken back once.
  void undo();

  [[nodiscard]] double makespan() const;
  [[nodiscard]] double span() const;
  [[nodiscard]] Figures figures() const;
  [[nodiscard]] Orders orders() const;

  [[nodiscard]] SeriesId series_of(TaskNumber task) const { return series_of_[task]; }
  [[nodiscard]] TaskNumber task_at(std::size_t rank, std::uint32_t position) const {
    return order_[rank][position];
  }
  [[nodiscard]] std::uint32_t position_of(TaskNumber task) const { return at_[task]; }
  /// Turns are an order of all tasks in which each stands behind what it waits for.
  [[nodiscard]] std::uint32_t turn_of(TaskNumber task) const { return turn_[task]; }
  [[nodiscard]] TaskNumber task_of_turn(std::size_t turn) const { return by_turn_[turn]; }
  /// When what a task waits for on another rank is there; 0 if it waits for nothing there.
  [[nodiscard]] double arrival_of(TaskNumber task) const {
    const SeriesId series = series_of_[task];
    const SeriesId first = problem_.series[series].waits_for;
    if (first == kNoSeries) return 0;
    return end_[task + (first - series) * microbatches_] + problem_.series[series].lag;
  }
  [[nodiscard]] double begin_at(std::size_t rank, std::uint32_t position) const;
  [[nodiscard]] double end_at(std::size_t rank, std::uint32_t position) const {
    return end_[order_[rank][position]];
  }
  /// The time that a task adds to its rank; a weight gradient takes less if it is not the first
  /// of its call.
  [[nodiscard]] double time_of(TaskNumber task) const {
    return calls_.takes(series_of_[task], in_call_[task]);
  }
  [[nodiscard]] std::uint32_t place_in_call(TaskNumber task) const { return in_call_[task]; }
  [[nodiscard]] const Calls& calls() const { return calls_; }
  /// The last position whose place in a call a shift may change, no less than both of its own.
  [[nodiscard]] std::uint32_t last_touched(std::size_t rank, std::uint32_t from,
                                           std::uint32_t to) const;
  /// The last position at which the last shift changed anything.
  [[nodiscard]] std::uint32_t last_changed() const { return last_.last; }

  /// The place of a task in its order.
  struct Place {
    std::size_t rank = 0;
    std::uint32_t position = 0;
  };
  /// The place of what a task waits for on another rank, if that, and not the task before it, sets
  /// its beginning.
  [[nodiscard]] std::optional<Place> held_up_by(std::size_t rank, std::uint32_t position) const;

  /// How many tasks the last shift looked at.
  [[nodiscard]] std::size_t visited() const { return visited_; }

 private:
  struct OldEnd {
    TaskNumber task;
    double end;
  };
  /// All that takes a shift back.
  struct Shift {
    std::size_t rank = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t last = 0;           ///< position with another task, or another place in a call
    std::uint32_t lowest = 0;         ///< of the turns that changed
    std::vector<TaskNumber> by_turn;  ///< as it was from there on
    std::vector<OldEnd> ends;
    bool done = false;
  };

  [[nodiscard]] std::optional<TaskNumber> awaited(TaskNumber task) const;
  [[nodiscard]] bool passes_its_own(std::size_t rank, std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] bool exceeds_memory(std::size_t rank, std::uint32_t from, std::uint32_t to);
  bool turn_later(std::size_t rank, std::uint32_t from, std::uint32_t to);
  bool turn_earlier(std::size_t rank, std::uint32_t from, std::uint32_t to);
  void new_stamp(TaskNumber task);
  void keep_turns(std::uint32_t lowest, std::uint32_t highest);
  void give_turns(std::uint32_t lowest, std::uint32_t highest, bool reached_first);
  void move(std::size_t rank, std::uint32_t from, std::uint32_t to);
  enum class Changed : std::uint8_t { Marked, Left };
  std::uint32_t give_places(std::size_t rank, std::uint32_t low, std::uint32_t high,
                            Changed changed);
  void mark(TaskNumber task);
  void mark_call(std::size_t rank, std::uint32_t position);
  void settle();
  [[nodiscard]] double begin_of(TaskNumber task) const;
  [[nodiscard]] double new_end_of(TaskNumber task) const;

  const Problem& problem_;
  Calls calls_;
  std::uint32_t microbatches_;
  std::vector<SeriesId> series_of_;             // by task
  std::vector<std::vector<TaskNumber>> order_;  // by rank
  std::vector<std::vector<double>> held_;       // by rank, behind each position
  std::vector<std::uint32_t> at_;               // by task: its position
  std::vector<double> end_;                     // by task
  std::vector<std::uint8_t> in_call_;           // by task: its place in its call
  std::vector<std::uint32_t> turn_;             // by task: its place in by_turn_
  std::vector<TaskNumber> by_turn_;             // each behind all that it waits for
  std::vector<std::uint64_t> dirty_;            // by turn, a bit each: the end may have changed
  std::size_t first_dirty_ = 0;                 // no word before this one has a bit
  std::vector<std::uint32_t> stamp_;            // by task: the last shift that reached it
  std::uint32_t stamps_ = 0;
  std::vector<TaskNumber> stack_;
  std::vector<TaskNumber> moved_;
  std::vector<double> new_held_;
  Shift last_;
  std::size_t visited_ = 0;
};

}  // namespace capo::optimise
