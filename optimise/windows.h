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

#include <cstddef>
#include <cstdint>
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

}  // namespace capo::optimise
