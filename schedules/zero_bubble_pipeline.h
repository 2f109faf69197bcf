// The ranks of a pipeline while a zero bubble search fills them, and what both searches share: the
// memory limit, times in a unit without fractions, and what they refuse.
//
//   rank 0   F0 F1 F2 B0        clock 4, idle 0, run {3 forwards, 1 backward, 0 weights}, owes W0
//
// A microbatch goes out from rank 0 to the last rank and, in a V pipeline, back again. A step is
// one of these legs in one of the passes; a linear pipeline knows kForwardOut and kBackwardBack
// only. The pipeline keeps the books and decides nothing: zero_bubble_search.cpp and
// zero_bubble_v_search.cpp say what runs next. Additions stand in the order of the authors'
// programs, since rounded times decide as much as exact ones.
//
// Tested by zero_bubble_search_test.cpp, and by
// golden_orders_test.cpp entry for entry.

#pragma once

#include "core/base/assert.h"
#include "core/base/index.h"
#include "schedules/orders.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::schedules::zero_bubble {

/// Tells by the number of tasks that a rank has run whether it stays within the setting's limit.
/// Tasks are counted and not summed up, so that rounding hides no limit that is reached exactly.
class MemoryLimit {
 public:
  explicit MemoryLimit(const Setting& setting);

  /// Tasks of all chunks together.
  struct Tasks {
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
    std::int32_t weights = 0;
  };

  /// Whether `more` forwards can follow, and a backward after them.
  [[nodiscard]] bool fits_forwards(const Tasks& run, std::int32_t more = 1) const;
  [[nodiscard]] bool fits_backward(const Tasks& run) const;

 private:
  double forward_;
  double kept_;      ///< memory of a microbatch between its backward and its weight gradient
  double headroom_;  ///< memory that a backward takes before it gives any back
  double limit_;
};

/// The setting in a smaller unit in which all times are whole numbers; the setting itself if its
/// times are no decimal fractions of few digits. Sums of fractions are rounded, so that equal times
/// would not be equal.
[[nodiscard]] Setting in_whole_times(const Setting& setting);

/// Says in one sentence why a search cannot begin with these counts, times and memory; nullopt if
/// it can.
[[nodiscard]] std::optional<std::string> refuse_search(std::string_view schedule,
                                                       const Setting& setting, std::int32_t chunks);

enum class Pass : std::uint8_t { Forward, Backward };
enum class Leg : std::uint8_t { Out, Back };

struct Step {
  Pass pass;
  Leg leg;
};
inline constexpr Step kForwardOut{Pass::Forward, Leg::Out};
inline constexpr Step kForwardBack{Pass::Forward, Leg::Back};
inline constexpr Step kBackwardOut{Pass::Backward, Leg::Out};
inline constexpr Step kBackwardBack{Pass::Backward, Leg::Back};

constexpr std::size_t index_of(Step step) {
  return 2 * as_index(step.pass) + as_index(step.leg);
}

constexpr std::int32_t chunk_of(Step step) {
  return (step.pass == Pass::Forward) == (step.leg == Leg::Out) ? 1 : 2;
}

struct Rank {
  Costs costs;
  double clock = 0;
  double idle = 0;                          ///< time that it has waited since its first forward
  std::array<std::vector<double>, 4> ends;  ///< indexed by step, then by microbatch
  MemoryLimit::Tasks run;
  std::vector<Move> owed;  ///< the W of every backward that was run; empty in a linear pipeline
  std::vector<Move> order;

  [[nodiscard]] std::int32_t count(Step step) const {
    return static_cast<std::int32_t>(ends[index_of(step)].size());
  }
  [[nodiscard]] bool owes_weight() const { return run.weights < run.backwards; }
};

class Pipeline {
 public:
  enum class Shape { Linear, V };
  Pipeline(const Setting& setting, Shape shape);

  [[nodiscard]] const MemoryLimit& memory() const { return memory_; }
  [[nodiscard]] std::int32_t microbatches() const { return microbatches_; }
  [[nodiscard]] double transfer() const { return transfer_; }
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  [[nodiscard]] const Rank& operator[](std::size_t r) const { return ranks_[r]; }
  [[nodiscard]] double most_idle() const { return most_idle_; }

  /// The rank that the next leg's input comes from, and the one that its output goes to; nullopt at
  /// the ends.
  [[nodiscard]] std::optional<std::size_t> rank_before(std::size_t r, Leg leg) const {
    if (leg == Leg::Out) return r > 0 ? std::optional(r - 1) : std::nullopt;
    return r + 1 < ranks_.size() ? std::optional(r + 1) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::size_t> rank_after(std::size_t r, Leg leg) const {
    return rank_before(r, leg == Leg::Out ? Leg::Back : Leg::Out);
  }

  /// Whether the next microbatch of the step has run on the rank before, if there is one.
  [[nodiscard]] bool has_input(std::size_t r, Step step) const {
    const auto neighbour = rank_before(r, step.leg);
    return !neighbour || ranks_[*neighbour].count(step) > ranks_[r].count(step);
  }

  /// The time at which the step's next input arrives; kNever if no rank sends it, or not yet.
  [[nodiscard]] double arrival(std::size_t r, Step step) const;

  /// Whether the step's next microbatch has done everything that comes before the step.
  [[nodiscard]] bool ready(std::size_t r, Step step) const;

  [[nodiscard]] bool fits(std::size_t r, Pass pass) const {
    return pass == Pass::Forward ? memory_.fits_forwards(ranks_[r].run)
                                 : memory_.fits_backward(ranks_[r].run);
  }

  /// Runs the step's next microbatch, whose input arrives at the time `input`.
  void run(std::size_t r, Step step, double input);
  void run(std::size_t r, Step step) { run(r, step, arrival(r, step)); }
  void run_weight(std::size_t r);
  /// Runs the Ws that end by the time `arrival`.
  void run_weights_until(std::size_t r, double arrival);
  /// Runs all Ws of all ranks.
  void run_weights_left();
  /// Runs Ws until a step of the pass fits; false if it still does not.
  [[nodiscard]] bool make_room(std::size_t r, Pass pass);

  /// Counts the work that a rank has beyond the rank with the least as waiting, so that real waits
  /// go to ranks that can afford them.
  void count_surplus_work_as_idle();

  [[nodiscard]] PublishedOrders orders() &&;

  static constexpr double kNever = -std::numeric_limits<double>::infinity();

 private:
  Shape shape_;
  double transfer_;
  std::int32_t microbatches_;
  MemoryLimit memory_;
  std::vector<Rank> ranks_;
  double most_idle_ = 0;
};

// The searches call these functions for every task and for every task that might come next, so they
// are inline.

inline bool MemoryLimit::fits_forwards(const Tasks& run, std::int32_t more) const {
  const std::int32_t without_backward = run.forwards + more - run.backwards;
  const std::int32_t without_weight = run.backwards - run.weights;
  return forward_ * without_backward + kept_ * without_weight + headroom_ <= limit_;
}

inline bool MemoryLimit::fits_backward(const Tasks& run) const {
  const std::int32_t without_backward = run.forwards - run.backwards - 1;
  const std::int32_t without_weight = run.backwards + 1 - run.weights;
  return forward_ * without_backward + kept_ * without_weight <= limit_;
}

inline double Pipeline::arrival(std::size_t r, Step step) const {
  const auto neighbour = rank_before(r, step.leg);
  if (!neighbour) return kNever;
  const std::vector<double>& sent = ranks_[*neighbour].ends[index_of(step)];
  const std::size_t next = ranks_[r].ends[index_of(step)].size();
  return next < sent.size() ? sent[next] + transfer_ : kNever;
}

inline bool Pipeline::ready(std::size_t r, Step step) const {
  const Rank& rank = ranks_[r];
  const std::int32_t next = rank.count(step);
  if (next == microbatches_ || !has_input(r, step)) return false;
  if (index_of(step) == index_of(kForwardOut)) return true;
  const std::size_t before = shape_ == Shape::Linear ? index_of(kForwardOut) : index_of(step) - 1;
  return std::cmp_greater(rank.ends[before].size(), next);
}

[[gnu::always_inline]] inline void Pipeline::run(std::size_t r, Step step, double input) {
  Rank& rank = ranks_[r];
  const bool forward = step.pass == Pass::Forward;
  const double cost = forward ? rank.costs.forward : rank.costs.backward;
  const double end_at_once = rank.clock + cost;
  rank.clock = std::max(end_at_once, input + cost);
  if (rank.count(kForwardOut) > 0) {
    rank.idle += rank.clock - end_at_once;
    most_idle_ = std::max(most_idle_, rank.idle);
  }
  const Move move{.kind = forward ? Kind::Forward : Kind::BackwardInput,
                  .chunk = chunk_of(step),
                  .microbatch = rank.count(step)};
  rank.order.push_back(move);
  rank.ends[index_of(step)].push_back(rank.clock);
  ++(forward ? rank.run.forwards : rank.run.backwards);
  if (forward || shape_ == Shape::Linear) return;
  rank.owed.push_back(
      {.kind = Kind::BackwardWeight, .chunk = move.chunk, .microbatch = move.microbatch});
}

inline void Pipeline::run_weight(std::size_t r) {
  Rank& rank = ranks_[r];
  CAPO_ASSERT(rank.owes_weight(), "a W follows its backward");
  const std::int32_t next = rank.run.weights++;
  rank.order.push_back(shape_ == Shape::V ? rank.owed[as_index(next)]
                                          : Move{.kind = Kind::BackwardWeight, .microbatch = next});
  rank.clock += rank.costs.weight;
}

inline void Pipeline::run_weights_until(std::size_t r, double arrival) {
  const Rank& rank = ranks_[r];
  while (rank.owes_weight() && rank.clock + rank.costs.weight <= arrival) run_weight(r);
}

inline bool Pipeline::make_room(std::size_t r, Pass pass) {
  while (!fits(r, pass)) {
    if (!ranks_[r].owes_weight()) return false;
    run_weight(r);
  }
  return true;
}

}  // namespace capo::schedules::zero_bubble
