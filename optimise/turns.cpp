// The turns of an evaluation's tasks, in which each stands behind all that it waits for, after a
// shift.
//
// A shift later puts the shifted task, and what waits for it so far, behind the tasks that it
// passes; a shift earlier puts it, and what it waits for, before them (evaluation.h). Tested by
// evaluation_test.cpp.

#include "optimise/evaluation.h"

#include <algorithm>

namespace capo::optimise {

namespace {

constexpr TaskNumber kNoTaskNumber = 0xffffffff;

}  // namespace

// Forgets what earlier shifts reached.
void Evaluation::new_stamp(TaskNumber task) {
  if (++stamps_ == 0) {
    std::fill(stamp_.begin(), stamp_.end(), 0);
    stamps_ = 1;
  }
  stamp_[task] = stamps_;
  stack_.clear();
}

void Evaluation::keep_turns(std::uint32_t lowest, std::uint32_t highest) {
  last_.lowest = lowest;
  last_.by_turn.assign(by_turn_.begin() + lowest, by_turn_.begin() + highest + 1);
}

// Gives these turns anew: what was reached comes before all others or behind them, and each part
// keeps its order.
void Evaluation::give_turns(std::uint32_t lowest, std::uint32_t highest, bool reached_first) {
  keep_turns(lowest, highest);
  moved_.clear();
  std::uint32_t turn = lowest;
  const auto give = [&](TaskNumber task) {
    by_turn_[turn] = task;
    turn_[task] = turn++;
  };
  for (const TaskNumber each : last_.by_turn) {
    const bool reached = stamp_[each] == stamps_;
    reached == reached_first ? give(each) : moved_.push_back(each);
  }
  for (const TaskNumber each : moved_) give(each);
}

// Puts the task, and what waits for it, behind the last task that it passes. Returns false if that
// one, or another in between, waits for it.
bool Evaluation::turn_later(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  const TaskNumber task = order_[rank][from];
  const std::uint32_t lowest = turn_[task];
  const std::uint32_t highest = turn_[order_[rank][to]];
  new_stamp(task);
  const auto reach = [&](TaskNumber other) {
    if (turn_[other] > highest || stamp_[other] == stamps_) return true;
    if (problem_.series[series_of_[other]].rank == rank) return false;
    stamp_[other] = stamps_;
    stack_.push_back(other);
    return true;
  };
  if (const auto other = awaited(task); other && !reach(*other)) return false;
  while (!stack_.empty()) {
    const TaskNumber reached = stack_.back();
    stack_.pop_back();
    const auto& order = order_[problem_.series[series_of_[reached]].rank];
    if (at_[reached] + 1 < order.size() && !reach(order[at_[reached] + 1])) return false;
    if (const auto other = awaited(reached); other && !reach(*other)) return false;
  }
  give_turns(lowest, highest, false);
  return true;
}

// Puts the task, and what it waits for, before the first task that it passes.
bool Evaluation::turn_earlier(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  const TaskNumber task = order_[rank][from];
  const std::uint32_t lowest = turn_[order_[rank][to]];
  const std::uint32_t highest = turn_[task];
  new_stamp(task);
  const auto reach = [&](TaskNumber other) {
    if (turn_[other] < lowest || stamp_[other] == stamps_) return true;
    if (problem_.series[series_of_[other]].rank == rank) return false;
    stamp_[other] = stamps_;
    stack_.push_back(other);
    return true;
  };
  const auto waited_for = [&](TaskNumber of) {
    const SeriesId series = series_of_[of];
    const SeriesId first = problem_.series[series].waits_for;
    return first == kNoSeries ? kNoTaskNumber : of + (first - series) * microbatches_;
  };
  if (const TaskNumber first = waited_for(task); first != kNoTaskNumber && !reach(first)) {
    return false;
  }
  while (!stack_.empty()) {
    const TaskNumber reached = stack_.back();
    stack_.pop_back();
    const auto& order = order_[problem_.series[series_of_[reached]].rank];
    if (at_[reached] > 0 && !reach(order[at_[reached] - 1])) return false;
    if (const TaskNumber first = waited_for(reached); first != kNoTaskNumber && !reach(first)) {
      return false;
    }
  }
  give_turns(lowest, highest, true);
  return true;
}

}  // namespace capo::optimise
