// How long after each task's end the objective is reached, and with that a guess of what a shift
// comes to, without making it.
//
// A walk takes most of its shifts back. The end of a task and its tail behind it make the longest
// way through that task; after a shift, ends and tails of the tasks between its two places follow
// from those around them, which mostly stay as they were. The longest of these ways is the guess:
// it is what the objective becomes if what the shift changes is on this rank alone, and it costs no
// more than the tasks passed (the estimate of local search in job shops, Taillard). A walk makes a
// shift only if the guess is good enough, and then knows.
//
// Tails are brought up to date when a shift is kept, as ends are by a shift: in the order of turns,
// from the end, and only as far as something changes. Of the span, a rank's end counts from its own
// beginning. Tested by tails_test.cpp.

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

  /// The longest way through a task that a shift within a rank would move or pass.
  [[nodiscard]] double guess(std::size_t rank, std::uint32_t from, std::uint32_t to);
  /// To be called after a shift within a rank that stays.
  void update(std::size_t rank, std::uint32_t from, std::uint32_t to);

  [[nodiscard]] double of(TaskNumber task) const { return tail_[task]; }

 private:
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
  std::vector<double> ends_;          // of guess()
};

}  // namespace capo::optimise
