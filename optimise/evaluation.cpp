#include "optimise/evaluation.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace capo::optimise {

namespace {

// The times of orders, and the order in which they were found, in which each task stands behind all
// that it waits for.
class FromNothing {
 public:
  FromNothing(const Problem& problem, const Orders& orders)
      : problem_(problem),
        orders_(orders),
        calls_(problem),
        call_(orders.size()),
        count_(problem.series.size(), 0),
        next_(orders.size(), 0),
        clock_(orders.size(), 0),
        first_(orders.size(), 0) {
    end_.resize(problem.tasks(), -1);
    found_.reserve(problem.tasks());
  }

  // Returns whether all tasks ran.
  bool run() {
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      if (orders_[rank].size() != problem_.tasks_of_rank()) return false;
      ranks_.push_back(rank);
    }
    while (!ranks_.empty()) {
      const std::size_t rank = ranks_.back();
      ranks_.pop_back();
      while (next_[rank] < orders_[rank].size() && run_next(rank)) {
      }
    }
    return found_.size() == problem_.tasks();
  }

  [[nodiscard]] Figures figures() const {
    Figures figures;
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      figures.makespan = std::max(figures.makespan, clock_[rank]);
      figures.span = std::max(figures.span, clock_[rank] - first_[rank]);
      double held = 0;
      double peak = 0;
      for (const SeriesId id : orders_[rank]) {
        const Series& series = problem_.series[id];
        peak = std::max(peak, series.most_held(held));
        held = series.held_behind(held);
      }
      figures.peaks.push_back(peak);
    }
    return figures;
  }

  [[nodiscard]] std::vector<double> take_ends() { return std::move(end_); }
  [[nodiscard]] std::vector<TaskNumber> take_found() { return std::move(found_); }

 private:
  // Returns false if the rank's next task has to wait, or stands before what it waits for.
  bool run_next(std::size_t rank) {
    const SeriesId id = orders_[rank][next_[rank]];
    const Series& series = problem_.series[id];
    const std::uint32_t microbatch = count_[id];
    if (microbatch == problem_.microbatches()) return false;
    for (const SeriesId behind : series.behind) {
      if (count_[behind] <= microbatch) return false;
    }
    double begin = clock_[rank];
    if (series.waits_for != kNoSeries) {
      const double there = end_[series.waits_for * problem_.microbatches() + microbatch];
      if (there < 0) return false;  // that rank comes back to this one
      begin = std::max(begin, there + series.lag);
    }
    if (next_[rank] == 0) first_[rank] = begin;
    const TaskNumber task = id * problem_.microbatches() + microbatch;
    Call& call = call_[rank];
    call.place = calls_.place_behind(call.series, call.place, id);
    call.series = id;
    if (call.place == 0) call.begin = begin;
    clock_[rank] = call.begin + calls_.until(id, call.place);
    end_[task] = clock_[rank];
    found_.push_back(task);
    ++count_[id];
    ++next_[rank];
    if (series.awaited_by != kNoSeries) {
      ranks_.push_back(problem_.series[series.awaited_by].rank);
    }
    return true;
  }

  /// The call that the last task of a rank belongs to.
  struct Call {
    SeriesId series = kNoSeries;
    std::uint32_t place = 0;
    double begin = 0;
  };

  const Problem& problem_;
  const Orders& orders_;
  Calls calls_;
  std::vector<Call> call_;            // by rank
  std::vector<std::uint32_t> count_;  // by series: so many have run
  std::vector<std::size_t> next_;     // by rank
  std::vector<double> clock_;
  std::vector<double> first_;
  std::vector<double> end_;  // by task; less than 0: it has not run
  std::vector<TaskNumber> found_;
  std::vector<std::size_t> ranks_;  // to be looked at
};

}  // namespace

double Figures::highest_peak() const {
  return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

std::optional<Figures> evaluate(const Problem& problem, const Orders& orders) {
  FromNothing times(problem, orders);
  if (!times.run()) return std::nullopt;
  return times.figures();
}

std::vector<double> ends_of(const Problem& problem, const Orders& orders) {
  FromNothing times(problem, orders);
  CAPO_ASSERT(times.run(), "only orders that run have times");
  return times.take_ends();
}

bool fits(const Problem& problem, const Figures& figures) {
  return problem.fits(figures.highest_peak());
}

Evaluation::Evaluation(const Problem& problem, const Orders& orders)
    : problem_(problem), calls_(problem), microbatches_(problem.microbatches()) {
  FromNothing times(problem, orders);
  CAPO_ASSERT(times.run(), "only orders that run are improved");
  CAPO_ASSERT(fits(problem, times.figures()), "only orders that fit are improved");
  end_ = times.take_ends();
  by_turn_ = times.take_found();

  const std::size_t tasks = problem.tasks();
  series_of_.resize(tasks);
  for (TaskNumber task = 0; task < tasks; ++task) series_of_[task] = task / microbatches_;
  at_.resize(tasks);
  turn_.resize(tasks);
  stamp_.assign(tasks, 0);
  dirty_.assign(tasks / 64 + 1, 0);
  first_dirty_ = dirty_.size();
  std::vector<std::uint32_t> count(problem.series.size(), 0);
  for (const auto& rank : orders) {
    auto& order = order_.emplace_back();
    auto& held = held_.emplace_back();
    double sum = 0;
    for (const SeriesId series : rank) {
      const TaskNumber task = series * microbatches_ + count[series]++;
      at_[task] = static_cast<std::uint32_t>(order.size());
      order.push_back(task);
      sum = problem.series[series].held_behind(sum);
      held.push_back(sum);
    }
  }
  in_call_.assign(tasks, 0);
  if (problem.fuses()) {
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      give_places(rank, 0, problem.tasks_of_rank() - 1, Changed::Left);
    }
  }
  // Tasks of about the same time stand close together, so that shifts have little to pass.
  // Tasks of equal beginnings keep the order in which they were found.
  std::vector<double> begins(tasks);
  for (const TaskNumber task : by_turn_) begins[task] = begin_of(task);
  std::stable_sort(by_turn_.begin(), by_turn_.end(),
                   [&](TaskNumber a, TaskNumber b) { return begins[a] < begins[b]; });
  for (std::uint32_t turn = 0; turn < tasks; ++turn) turn_[by_turn_[turn]] = turn;
}

double Evaluation::begin_of(TaskNumber task) const {
  const std::uint32_t position = at_[task];
  const double arrival = arrival_of(task);
  if (position == 0) return arrival;
  return std::max(end_[order_[problem_.series[series_of_[task]].rank][position - 1]], arrival);
}

// A call ends when its rank was free for it and it has taken its time.
double Evaluation::new_end_of(TaskNumber task) const {
  const SeriesId series = series_of_[task];
  const std::uint32_t place = in_call_[task];
  if (place == 0) return begin_of(task) + problem_.series[series].takes;
  const auto& order = order_[problem_.series[series].rank];
  return end_[order[at_[task] - place - 1]] + calls_.until(series, place);
}

double Evaluation::begin_at(std::size_t rank, std::uint32_t position) const {
  return begin_of(order_[rank][position]);
}

std::optional<Evaluation::Place> Evaluation::held_up_by(std::size_t rank,
                                                        std::uint32_t position) const {
  const TaskNumber task = order_[rank][position];
  const Series& series = problem_.series[series_of_[task]];
  if (series.waits_for == kNoSeries) return std::nullopt;
  const TaskNumber first = task + (series.waits_for - series_of_[task]) * microbatches_;
  if (position > 0 && end_[order_[rank][position - 1]] >= end_[first] + series.lag) {
    return std::nullopt;
  }
  return Place{.rank = problem_.series[series.waits_for].rank, .position = at_[first]};
}

// The task on another rank that waits for this one.
std::optional<TaskNumber> Evaluation::awaited(TaskNumber task) const {
  const SeriesId series = series_of_[task];
  const SeriesId by = problem_.series[series].awaited_by;
  if (by == kNoSeries) return std::nullopt;
  return task + (by - series) * microbatches_;
}

bool Evaluation::passes_its_own(std::size_t rank, std::uint32_t from, std::uint32_t to) const {
  const TaskNumber task = order_[rank][from];
  const SeriesId id = series_of_[task];
  const std::uint32_t microbatch = task - id * microbatches_;
  const Series& series = problem_.series[id];
  if (to > from) {
    if (microbatch + 1 < microbatches_ && at_[task + 1] <= to) return true;
    return std::any_of(series.before.begin(), series.before.end(), [&](SeriesId later) {
      return at_[later * microbatches_ + microbatch] <= to;
    });
  }
  if (microbatch > 0 && at_[task - 1] >= to) return true;
  return std::any_of(series.behind.begin(), series.behind.end(), [&](SeriesId earlier) {
    return at_[earlier * microbatches_ + microbatch] >= to;
  });
}

// Fills new_held_ with what is held behind the positions from the lower to the higher of the two.
bool Evaluation::exceeds_memory(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t low = std::min(from, to);
  const std::uint32_t high = std::max(from, to);
  const auto& order = order_[rank];
  double held = low == 0 ? 0 : held_[rank][low - 1];
  new_held_.clear();
  for (std::uint32_t position = low; position <= high; ++position) {
    const std::uint32_t now = position == to ? from : to > from ? position + 1 : position - 1;
    const Series& series = problem_.series[series_of_[order[now]]];
    if (!problem_.fits(series.most_held(held))) return true;
    held = series.held_behind(held);
    new_held_.push_back(held);
  }
  return false;
}

void Evaluation::mark(TaskNumber task) {
  const std::uint32_t turn = turn_[task];
  dirty_[turn / 64] |= std::uint64_t{1} << (turn % 64);
  first_dirty_ = std::min<std::size_t>(first_dirty_, turn / 64);
}

// Marks a task and, if a call begins with it, all of the call: each of its ends follows from when
// it begins.
void Evaluation::mark_call(std::size_t rank, std::uint32_t position) {
  const auto& order = order_[rank];
  mark(order[position]);
  while (++position < order.size() && in_call_[order[position]] > 0) mark(order[position]);
}

std::uint32_t Evaluation::last_touched(std::size_t rank, std::uint32_t from,
                                       std::uint32_t to) const {
  const auto& order = order_[rank];
  std::uint32_t last = std::max(from, to);
  if (!problem_.fuses() || last + 1 == order.size()) return last;
  const SeriesId next = series_of_[order[last + 1]];
  if (half_of(next) != Half::Weight) return last;
  while (last + 1 < order.size() && series_of_[order[last + 1]] == next) ++last;
  return last;
}

// Gives the tasks their places in calls from `low` to `high`, and on until no place is another one
// than before. Returns the last position that was given another one, or `high`.
std::uint32_t Evaluation::give_places(std::size_t rank, std::uint32_t low, std::uint32_t high,
                                      Changed changed) {
  const auto& order = order_[rank];
  SeriesId before = low == 0 ? kNoSeries : series_of_[order[low - 1]];
  std::uint32_t place = low == 0 ? 0 : in_call_[order[low - 1]];
  std::uint32_t last = high;
  for (std::uint32_t at = low; at < order.size(); ++at) {
    const TaskNumber task = order[at];
    place = calls_.place_behind(before, place, series_of_[task]);
    before = series_of_[task];
    if (place == in_call_[task]) {
      if (at > high) break;
      continue;
    }
    in_call_[task] = static_cast<std::uint8_t>(place);
    last = std::max(last, at);
    if (changed == Changed::Marked) mark(task);
  }
  return last;
}

void Evaluation::move(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  auto& order = order_[rank];
  const auto begin = order.begin();
  if (from < to) {
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  } else {
    std::rotate(begin + to, begin + from, begin + from + 1);
  }
  for (std::uint32_t at = std::min(from, to); at <= std::max(from, to); ++at) at_[order[at]] = at;
}

// Looks at all that is marked in the order of turns; a mark that is made on the way lies ahead.
void Evaluation::settle() {
  visited_ = 0;
  for (std::size_t word = first_dirty_; word < dirty_.size(); ++word) {
    while (dirty_[word] != 0) {
      const std::size_t bit = as_index(std::countr_zero(dirty_[word]));
      dirty_[word] &= dirty_[word] - 1;
      const TaskNumber task = by_turn_[word * 64 + bit];
      const Series& series = problem_.series[series_of_[task]];
      const double end = new_end_of(task);
      ++visited_;
      if (end == end_[task]) continue;
      last_.ends.push_back({.task = task, .end = end_[task]});
      end_[task] = end;
      const auto& order = order_[series.rank];
      const std::uint32_t next = at_[task] + 1;
      const bool awaits = next < order.size() && in_call_[order[next]] == 0;
      if (awaits) mark_call(series.rank, next);
      if (const auto other = awaited(task)) mark(*other);
    }
  }
  first_dirty_ = dirty_.size();
}

bool Evaluation::shift(std::size_t rank, std::uint32_t from, std::uint32_t to) {
  if (from == to || passes_its_own(rank, from, to) || exceeds_memory(rank, from, to)) return false;
  if (!(from < to ? turn_later(rank, from, to) : turn_earlier(rank, from, to))) return false;
  const std::uint32_t low = std::min(from, to);
  const std::uint32_t high = std::max(from, to);
  move(rank, from, to);
  std::copy(new_held_.begin(), new_held_.end(), held_[rank].begin() + low);
  last_.rank = rank;
  last_.from = from;
  last_.to = to;
  last_.done = true;
  last_.ends.clear();
  last_.last = problem_.fuses() ? give_places(rank, low, high, Changed::Marked) : high;
  mark_call(rank, low);
  mark_call(rank, to);
  if (high + 1 < order_[rank].size()) mark_call(rank, high + 1);
  if (to < from) mark_call(rank, to + 1);
  settle();
  return true;
}

void Evaluation::undo() {
  CAPO_ASSERT(last_.done, "there is a shift to take back");
  last_.done = false;
  for (const OldEnd& old : last_.ends) end_[old.task] = old.end;
  move(last_.rank, last_.to, last_.from);
  if (problem_.fuses()) {
    give_places(last_.rank, std::min(last_.from, last_.to), last_.last, Changed::Left);
  }
  std::uint32_t turn = last_.lowest;
  for (const TaskNumber task : last_.by_turn) {
    by_turn_[turn] = task;
    turn_[task] = turn++;
  }
  const std::uint32_t low = std::min(last_.from, last_.to);
  const std::uint32_t high = std::max(last_.from, last_.to);
  double held = low == 0 ? 0 : held_[last_.rank][low - 1];
  for (std::uint32_t at = low; at <= high; ++at) {
    held = problem_.series[series_of_[order_[last_.rank][at]]].held_behind(held);
    held_[last_.rank][at] = held;
  }
}

double Evaluation::makespan() const {
  double last = 0;
  for (const auto& order : order_) last = std::max(last, end_[order.back()]);
  return last;
}

double Evaluation::span() const {
  double span = 0;
  for (const auto& order : order_) span = std::max(span, end_[order.back()] - begin_of(order[0]));
  return span;
}

// Amounts are added up anew: behind a shift held_ has them in the order before it, which rounds
// otherwise.
Figures Evaluation::figures() const {
  Figures figures{.makespan = makespan(), .span = span()};
  for (const auto& order : order_) {
    double held = 0;
    double peak = 0;
    for (const TaskNumber task : order) {
      const Series& series = problem_.series[series_of_[task]];
      peak = std::max(peak, series.most_held(held));
      held = series.held_behind(held);
    }
    figures.peaks.push_back(peak);
  }
  return figures;
}

Orders Evaluation::orders() const {
  Orders orders;
  for (const auto& order : order_) {
    auto& series = orders.emplace_back();
    series.reserve(order.size());
    for (const TaskNumber task : order) series.push_back(series_of_[task]);
  }
  return orders;
}

}  // namespace capo::optimise
