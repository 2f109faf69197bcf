// How early a task may begin and how much follows it, with the step of reasoning for each: what
// certificate.cpp writes down. A fact is found again here and apart from bounds.cpp, and never from
// a number that the search found. Tested by tests/schema/bound_test.py.

#pragma once

#include "optimise/problem.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace capo::optimise {

/// How a head or a tail follows.
enum class By : std::uint8_t {
  Nothing,     ///< it is not known
  Ends,        ///< the step, or the rank whose span is meant, begins there or ends there
  Wait,        ///< a task that it waits for, or one that waits for it
  Work,        ///< all that its rank runs before it, or behind it
  Memory,      ///< the backward that must have given up memory
  MemoryWork,  ///< the work that gives up so much memory
};

enum class Side : std::uint8_t { Head, Tail };

struct Reached {
  double value = -std::numeric_limits<double>::infinity();
  By by = By::Nothing;
  std::vector<TaskNumber> from;

  void raise(double to, By reason, std::vector<TaskNumber> premises) {
    if (to > value) *this = {.value = to, .by = reason, .from = std::move(premises)};
  }
};

/// Which tasks of one series come before task k of another.
enum class Precede : std::uint8_t { None, Earlier /* 0 to k - 1 */, UpTo /* 0 to k */ };

/// Heads and tails of all tasks, with their reasons.
class Derivation {
 public:
  /// `rank`: whose span it is; nullopt: the makespan. The problem outlives it.
  Derivation(const Problem& problem, std::optional<std::size_t> rank);

  [[nodiscard]] const Reached& of(Side side, TaskNumber task) const {
    return side == Side::Head ? heads_[task] : tails_[task];
  }
  /// The first forwards of a rank, one of each pipeline.
  [[nodiscard]] std::vector<TaskNumber> firsts_of(std::size_t rank) const;

 private:
  [[nodiscard]] Precede precede(SeriesId first, SeriesId second) const;
  [[nodiscard]] double work_before(SeriesId series, std::uint32_t k) const;
  [[nodiscard]] double work_behind(SeriesId series, std::uint32_t k) const;
  [[nodiscard]] TaskNumber first_before(SeriesId series) const;
  void find_head(SeriesId id, std::uint32_t k);
  void raise_by_memory(Reached& head, SeriesId id, std::uint32_t k) const;
  void find_tail(SeriesId id, std::uint32_t k);

  const Problem& problem_;
  std::uint32_t m_;
  std::optional<std::size_t> own_;
  std::vector<std::size_t> pipeline_;  ///< by stage: the first stage of its pipeline
  std::vector<Reached> heads_;         ///< by task
  std::vector<Reached> tails_;
};

/// Tasks of a rank, those with no less than such a head and tail.
struct Chosen {
  std::size_t rank = 0;
  double head = 0;
  double tail = 0;
  double shown = 0;  ///< by them
};

/// The tasks of a rank that show the most.
[[nodiscard]] Chosen chosen_of(const Problem& problem, const Derivation& derivation,
                               std::size_t rank);

}  // namespace capo::optimise
