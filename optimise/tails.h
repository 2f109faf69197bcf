// How long after each task's end the objective is reached, and with that what a shift comes to,
// without making it.
//
// The end of a task and its tail behind it make the longest way through that task. A shift changes
// only what follows what on its rank between its two places; if no way leads from one of the tasks
// there over other ranks to another of them, then their ends and tails after the shift follow from
// those around them, which stay. The longest way through one of them is then all that the shift can
// change:
//
//   it is no shorter than the objective     the objective becomes that long, exactly
//   shorter, and none of them was critical  the objective stays, exactly
//   shorter, and one was                    the objective becomes shorter, or stays: only a shift
//   tells
//
// A shift that changes places in calls (calls.h) changes what tasks take up to the end of the run
// of weight gradients behind it, so that these are looked at as well, like tasks that it passes.
//
// Foreseeing costs no more than the tasks passed, where re-evaluation may have to look at all that
// comes behind (Taillard's estimate of local search in job shops). A walk makes only those shifts
// that it may keep.
//
// Tails are brought up to date when a shift is kept, as ends are by a shift: in the order of turns,
// from the end, and only as far as something changes. Of the span, a rank's end counts from its own
// beginning. An objective that is foreseen is a sum in another order than the simulator's, so that
// the two are equal but for rounding, and to the last bit if times are whole numbers. Tested by
// tails_test.cpp.

#pragma once

#include "optimise/evaluation.h"
#include "optimise/problem.h"

#include <cstdint>
#include <vector>

namespace capo::optimise {

enum class Objective : std::uint8_t { Makespan, Span };

class Tails {
 public:
  /// Both outlive the tails.
  Tails(const Problem& problem, const Evaluation& evaluation, Objective objective);

  struct Foreseen {
    double value = 0;    ///< of the objective
    bool exact = false;  ///< else it is a guess, and the shift may not even be possible
  };

  /// Tells what the objective, now `value`, becomes by a shift that passes neither its own nor the
  /// memory.
  [[nodiscard]] Foreseen foresee(std::size_t rank, std::uint32_t from, std::uint32_t to,
                                 double value);
  /// To be called after a shift within a rank that stays.
  void update(std::size_t rank, std::uint32_t from, std::uint32_t to);

  [[nodiscard]] double of(TaskNumber task) const { return tail_[task]; }

 private:
  [[nodiscard]] double longest_way(std::size_t rank, std::uint32_t from, std::uint32_t to);
  void look_ahead(std::size_t rank, std::uint32_t from, std::uint32_t to);
  [[nodiscard]] bool may_lead_back(std::size_t rank, std::uint32_t low, std::uint32_t high) const;
  [[nodiscard]] bool any_critical(std::size_t rank, std::uint32_t low, std::uint32_t high,
                                  double value) const;
  [[nodiscard]] double behind_elsewhere(TaskNumber task) const;
  [[nodiscard]] double tail_of(TaskNumber task) const;
  [[nodiscard]] double at_the_end(std::size_t rank) const;
  void mark(TaskNumber task);
  void settle();

  const Problem& problem_;
  const Evaluation& evaluation_;
  Objective objective_;
  std::vector<double> tail_;          // by task
  std::vector<double> begin_;         // by rank, of its first task; 0 for the makespan
  std::vector<std::uint64_t> dirty_;  // by turn, a bit each: the tail may have changed
  std::size_t last_dirty_ = 0;        // no word behind this one has a bit
  /// A task that a shift moves or touches, and its time behind the shift.
  struct Then {
    TaskNumber task = 0;
    double takes = 0;
    double end = 0;
  };
  std::vector<Then> then_;  // of longest_way()
};

}  // namespace capo::optimise
