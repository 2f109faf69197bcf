#include "optimise/tails.h"

#include "core/base/index.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace capo::optimise {

namespace {

/// Sums of the same times in another order differ by less than this share.
constexpr double kRounding = 1e-12;

}  // namespace

Tails::Tails(const Problem& problem, const Evaluation& evaluation, Objective objective)
    : problem_(problem),
      evaluation_(evaluation),
      objective_(objective),
      tail_(problem.tasks(), -std::numeric_limits<double>::infinity()),
      begin_(problem.of_rank.size(), 0),
      dirty_(problem.tasks() / 64 + 1, 0) {
  if (objective_ == Objective::Span) {
    for (std::size_t rank = 0; rank < begin_.size(); ++rank) {
      begin_[rank] = evaluation.begin_at(rank, 0);
    }
  }
  for (TaskNumber task = 0; task < problem.tasks(); ++task) mark(task);
  settle();
}

double Tails::at_the_end(std::size_t rank) const {
  return -begin_[rank];
}

// The longest way behind a task over what waits for it on another rank.
double Tails::behind_elsewhere(TaskNumber task) const {
  const SeriesId series = evaluation_.series_of(task);
  const SeriesId by = problem_.series[series].awaited_by;
  if (by == kNoSeries) return -std::numeric_limits<double>::infinity();
  const Series& next = problem_.series[by];
  return next.lag + next.takes + tail_[task + (by - series) * problem_.microbatches()];
}

double Tails::tail_of(TaskNumber task) const {
  const std::size_t rank = problem_.series[evaluation_.series_of(task)].rank;
  const std::uint32_t position = evaluation_.position_of(task);
  const double elsewhere = behind_elsewhere(task);
  if (position + 1 == problem_.tasks_of_rank()) return std::max(at_the_end(rank), elsewhere);
  const TaskNumber next = evaluation_.task_at(rank, position + 1);
  return std::max(evaluation_.time_of(next) + tail_[next], elsewhere);
}

// Fills then_ with the tasks that the shift moves, passes or touches, as they stand and end behind
// it.
void Tails::look_ahead(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t low = std::min(from, to);
  const std::uint32_t high = std::max(from, to);
  const std::uint32_t last = evaluation_.last_touched(rank, from, to);
  SeriesId before = kNoSeries;
  std::uint32_t place = 0;
  double end = 0;
  if (low > 0) {
    const TaskNumber task = evaluation_.task_at(rank, low - 1);
    before = evaluation_.series_of(task);
    place = evaluation_.place_in_call(task);
    end = evaluation_.end_at(rank, low - 1);
  }
  then_.clear();
  for (std::uint32_t position = low; position <= last; ++position) {
    const std::uint32_t now = position > high  ? position
                              : position == to ? from
                              : to > from      ? position + 1
                                               : position - 1;
    const TaskNumber task = evaluation_.task_at(rank, now);
    const SeriesId series = evaluation_.series_of(task);
    place = evaluation_.calls().place_behind(before, place, series);
    before = series;
    const double takes = evaluation_.calls().takes(series, place);
    end = std::max(end, evaluation_.arrival_of(task)) + takes;
    then_.push_back({.task = task, .takes = takes, .end = end});
  }
}

// The longest way through a task that the shift moves, passes or touches.
double Tails::longest_way(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  look_ahead(rank, from, to);
  const auto next = std::min(from, to) + static_cast<std::uint32_t>(then_.size());
  double behind = at_the_end(rank);
  if (next < problem_.tasks_of_rank()) {
    const TaskNumber task = evaluation_.task_at(rank, next);
    behind = evaluation_.time_of(task) + tail_[task];
  }
  double longest = -std::numeric_limits<double>::infinity();
  for (auto each = then_.rbegin(); each != then_.rend(); ++each) {
    const double tail = std::max(behind, behind_elsewhere(each->task));
    longest = std::max(longest, each->end + tail);
    behind = each->takes + tail;
  }
  return longest;
}

// Whether a way may lead from one of the tasks over other ranks to another of them: what that one
// waits for is what the first sets off elsewhere, or begins when that has ended.
bool Tails::may_lead_back(std::size_t rank, std::uint32_t low, std::uint32_t high) const {
  double soonest = std::numeric_limits<double>::infinity();
  for (std::uint32_t position = low; position <= high; ++position) {
    const TaskNumber task = evaluation_.task_at(rank, position);
    const SeriesId id = evaluation_.series_of(task);
    const Series& series = problem_.series[id];
    if (series.waits_for != kNoSeries) {
      const Series& first = problem_.series[series.waits_for];
      const TaskNumber waited_for = task + (series.waits_for - id) * problem_.microbatches();
      const std::uint32_t there = evaluation_.position_of(waited_for);
      if (evaluation_.begin_at(first.rank, there) >= soonest) return true;
      if (first.waits_for != kNoSeries && problem_.series[first.waits_for].rank == rank) {
        const std::uint32_t here =
            evaluation_.position_of(task + (first.waits_for - id) * problem_.microbatches());
        if (here >= low && here < position) return true;
      }
    }
    if (series.awaited_by != kNoSeries) {
      const Series& next = problem_.series[series.awaited_by];
      soonest = std::min(soonest, evaluation_.end_at(rank, position) + next.lag + next.takes);
    }
  }
  return false;
}

bool Tails::any_critical(std::size_t rank, std::uint32_t low, std::uint32_t high,
                         double value) const {
  for (std::uint32_t position = low; position <= high; ++position) {
    const double way =
        evaluation_.end_at(rank, position) + tail_[evaluation_.task_at(rank, position)];
    if (way >= value * (1 - kRounding)) return true;
  }
  return false;
}

Tails::Foreseen Tails::foresee(std::size_t rank, std::uint32_t from, std::uint32_t to,
                               double value) {
  const std::uint32_t low = std::min(from, to);
  const std::uint32_t high = evaluation_.last_touched(rank, from, to);
  const double way = longest_way(rank, from, to);
  // A rank's span begins with its first task, which this changes.
  const bool changes_beginning = objective_ == Objective::Span && low == 0;
  if (changes_beginning || may_lead_back(rank, low, high)) return {.value = way, .exact = false};
  if (way >= value) return {.value = way, .exact = true};
  const bool stays = !any_critical(rank, low, high, value);
  return {.value = stays ? value : way, .exact = stays};
}

void Tails::mark(TaskNumber task) {
  const std::uint32_t turn = evaluation_.turn_of(task);
  dirty_[turn / 64] |= std::uint64_t{1} << (turn % 64);
  last_dirty_ = std::max<std::size_t>(last_dirty_, turn / 64);
}

// Looks at all that is marked from the last turn to the first; a mark on the way lies ahead.
void Tails::settle() {
  for (std::size_t word = last_dirty_ + 1; word-- > 0;) {
    while (dirty_[word] != 0) {
      const std::size_t bit = 63 - as_index(std::countl_zero(dirty_[word]));
      dirty_[word] &= ~(std::uint64_t{1} << bit);
      const TaskNumber task = evaluation_.task_of_turn(word * 64 + bit);
      const double tail = tail_of(task);
      if (tail == tail_[task]) continue;
      tail_[task] = tail;
      const SeriesId series = evaluation_.series_of(task);
      const std::uint32_t position = evaluation_.position_of(task);
      if (position > 0) mark(evaluation_.task_at(problem_.series[series].rank, position - 1));
      const SeriesId first = problem_.series[series].waits_for;
      if (first != kNoSeries) mark(task + (first - series) * problem_.microbatches());
    }
  }
  last_dirty_ = 0;
}

void Tails::update(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t low = std::min(from, to);
  const std::uint32_t last = std::max({from, to, evaluation_.last_changed()});
  for (std::uint32_t at = low == 0 ? 0 : low - 1; at <= last; ++at) {
    mark(evaluation_.task_at(rank, at));
  }
  if (objective_ == Objective::Span) {
    for (std::size_t each = 0; each < begin_.size(); ++each) {
      const double begin = evaluation_.begin_at(each, 0);
      if (begin == begin_[each]) continue;
      begin_[each] = begin;
      mark(evaluation_.task_at(each, problem_.tasks_of_rank() - 1));
    }
  }
  settle();
}

}  // namespace capo::optimise
