// A walk through orders, by one shift at a time, towards better ones: simulated annealing.
//
// A shift that makes the objective better or leaves it is kept, one that makes it worse by d with
// the probability exp(-d / temperature); all others are taken back. The temperature falls from a
// share of a task's time to nothing within a cycle, and each cycle begins with the best orders so
// far and is longer than the one before. Among equal objectives ranks that end earlier are better,
// which leads over plateaus. Most shifts are of tasks on the critical path, since no other shift
// makes the objective better; that path is looked up again when enough has changed.
//
// A walk is a function of its problem, orders and seed: it draws all its numbers itself, so that
// they are the same with every compiler and library. Tested by walk_test.cpp.

#pragma once

#include "optimise/chance.h"
#include "optimise/evaluation.h"
#include "optimise/problem.h"
#include "optimise/tails.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace capo::optimise {

[[nodiscard]] inline double value_of(const Figures& figures, Objective objective) {
  return objective == Objective::Makespan ? figures.makespan : figures.span;
}

class Walk {
 public:
  /// Precondition: the orders run and fit. The problem outlives the walk. `heat` is the temperature
  /// that a cycle begins with, in mean times of a task.
  Walk(const Problem& problem, const Orders& orders, Objective objective, std::uint64_t seed,
       double heat = kHeat);

  /// Tries so many shifts, or fewer if `stopped` says so, which is asked now and then.
  void run(std::uint64_t shifts, const std::function<bool()>& stopped);

  [[nodiscard]] double best() const { return best_; }

  [[nodiscard]] const Orders& best_orders() const { return best_orders_; }

 private:
  static constexpr double kHeat = 0.3;

  struct Cost {
    double value = 0;  ///< of the objective
    double tie = 0;    ///< the sum of the ranks' ends
  };

  [[nodiscard]] Cost cost() const;
  [[nodiscard]] double weighed(const Cost& cost) const;
  void begin_at(const Orders& orders);
  void begin_cycle();
  void find_critical();
  bool try_shift();
  [[nodiscard]] Evaluation::Place draw_place();
  [[nodiscard]] std::uint32_t draw_target(const Evaluation::Place& from);
  [[nodiscard]] std::uint32_t beside_another(const Evaluation::Place& from);

  const Problem& problem_;
  Objective objective_;
  double heat_;
  Chance chance_;
  std::optional<Evaluation> evaluation_;
  std::optional<Tails> tails_;
  Cost now_;
  double best_ = 0;
  Orders best_orders_;
  bool best_is_here_ = true;  // and best_orders_ is not yet written down
  std::vector<Evaluation::Place> critical_;
  std::uint32_t changes_ = 0;  // since the path was looked up
  double unit_ = 1;            // a task's time
  double temperature_ = 0;
  std::uint64_t cycle_ = 0;  // shifts of the current cycle
  std::uint64_t in_cycle_ = 0;
};

}  // namespace capo::optimise
