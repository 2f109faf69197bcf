#include "optimise/periods.h"

#include "core/base/index.h"
#include "optimise/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace capo::optimise {

namespace {

/// Times that differ by less than this share of a period are equal.
constexpr double kEqual = 1e-9;
/// Courses that are tried for a period before a longer one is tried, at first.
constexpr std::uint64_t kCoursesOfPeriod = 2000;
/// Orders are made if they are shorter by this share for each of their tasks.
constexpr double kShareOfTask = 2e-9;
/// Stopping is asked for so often.
constexpr std::uint64_t kCoursesOfSlice = 64;

}  // namespace

Periods::Periods(const Problem& problem, std::uint64_t seed)
    : problem_(problem),
      chance_(seed),
      begin_(problem.series.size(), 0),
      taken_(problem.of_rank.size()),
      shortest_(std::numeric_limits<double>::infinity()),
      offered_(std::numeric_limits<double>::infinity()),
      patience_(kCoursesOfPeriod) {
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    by_turn_.push_back(series_of(stage, Half::Forward));
  }
  for (std::size_t stage = problem.stages(); stage-- > 0;) {
    by_turn_.push_back(series_of(stage, Half::Backward));
  }
  for (const auto& rank : problem.of_rank) {
    double work = 0;
    for (const SeriesId series : rank) work += problem.series[series].takes;
    work_ = std::max(work_, work);
  }
  delays_.wait.assign(by_turn_.size(), 0);
  delays_.eager.assign(problem.stages(), true);
  too_short_ = work_ * (1 - 1e-6);
  period_ = work_;
}

// The first time from `ready` on at which a task fits into every period; nullopt if none does.
std::optional<double> Periods::free_from(std::size_t rank, double ready, double takes) const {
  const double equal = kEqual * period_;
  double begin = ready;
  for (std::size_t free_of = 0, at = 0; free_of < taken_[rank].size();
       at = (at + 1) % taken_[rank].size()) {
    const Taken& taken = taken_[rank][at];
    const double behind = begin - taken.begin;  // its beginning, within a period
    const double since = behind - std::floor(behind / period_) * period_;
    if (since < taken.takes - equal) {
      begin += taken.takes - since;
      free_of = 0;
    } else if (since + takes > period_ + equal) {
      if (since >= period_ - equal) {  // it begins with that one, but for rounding
        begin += taken.takes + (period_ - since);
      } else {
        begin += period_ - since + taken.takes;
      }
      free_of = 0;
    } else {
      ++free_of;
    }
    if (begin > ready + period_ + equal) return std::nullopt;
  }
  return begin;
}

bool Periods::put(SeriesId id, double ready) {
  const Series& series = problem_.series[id];
  const auto begin = free_from(series.rank, ready, series.takes);
  begin_[id] = begin.value_or(ready);
  if (!begin) return false;
  if (series.takes > 0) taken_[series.rank].push_back({.begin = *begin, .takes = series.takes});
  return true;
}

// A rank's order holds most behind one of its forwards, or in a backward that recomputes, before
// that gives up what it does at its end.
double Periods::held_at_most(std::size_t rank) const {
  double most = 0;
  for (const SeriesId taking : problem_.of_rank[rank]) {
    const bool again = problem_.series[taking].during > 0;
    if (half_of(taking) != Half::Forward && !again) continue;
    double held = again ? -problem_.series[taking].holds : 0;
    for (const SeriesId each : problem_.of_rank[rank]) {
      const double since = (begin_[taking] - begin_[each]) / period_ + kEqual;
      held += problem_.series[each].held_behind(0) * (std::floor(since) + 1);
    }
    most = std::max(most, held);
  }
  return most;
}

Periods::Cost Periods::place(const Delays& delays) {
  for (auto& rank : taken_) rank.clear();
  Cost cost;
  double ready = 0;
  const auto weight = [&](std::size_t stage) {
    const SeriesId backward = series_of(stage, Half::Backward);
    const double behind = begin_[backward] + problem_.series[backward].takes;
    const SeriesId id = series_of(stage, Half::Weight);
    cost.excess += put(id, behind) ? 0 : 1;
    cost.flight = std::max(cost.flight, begin_[id] + problem_.series[id].takes);
  };
  for (std::size_t turn = 0; turn < by_turn_.size(); ++turn) {
    const SeriesId id = by_turn_[turn];
    const Series& series = problem_.series[id];
    ready += (series.waits_for == kNoSeries ? 0 : series.lag) + delays.wait[turn];
    cost.excess += put(id, ready) ? 0 : 1;
    ready = begin_[id] + series.takes;
    if (half_of(id) == Half::Backward && delays.eager[stage_of(id)]) weight(stage_of(id));
  }
  for (std::size_t stage = problem_.stages(); stage-- > 0;) {
    if (!delays.eager[stage]) weight(stage);
  }
  for (std::size_t rank = 0; rank < taken_.size(); ++rank) {
    const double held = held_at_most(rank);
    if (problem_.fits(held)) continue;
    const SeriesId forward = problem_.of_rank[rank][0];
    const double each = problem_.series[forward].holds + problem_.series[forward + 1].during;
    cost.excess += (held - problem_.memory_limit) / std::max(each, kEqual * held);
  }
  return cost;
}

double Periods::weighed(const Cost& cost) const {
  return cost.excess + 0.05 * cost.flight / period_;
}

void Periods::vary(Delays& delays) {
  do {
    const std::size_t turn = chance_.below(by_turn_.size());
    switch (chance_.below(5)) {
      case 0:
        delays.eager[turn / 2] = !delays.eager[turn / 2];
        break;
      case 1:
        delays.wait[turn] = 0;
        break;
      case 2:  // what one gives another takes, so that those behind both stay
        std::swap(delays.wait[turn], delays.wait[chance_.below(by_turn_.size())]);
        break;
      default: {
        const double share = chance_.share();
        delays.wait[turn] = 0.5 * share * share * period_;
      }
    }
  } while (chance_.below(2) == 0);
}

// Each rank's tasks by their times in all courses: period by period, each with its tasks in the
// order of their times within it.
Orders Periods::orders() const {
  struct Phase {
    double begin;         // within a period
    std::int64_t period;  // of the first microbatch
    SeriesId series;
  };
  const std::int64_t microbatches = problem_.microbatches();
  Orders orders;
  for (const auto& rank : problem_.of_rank) {
    std::vector<Phase> phases;
    std::int64_t last = 0;
    for (const SeriesId series : rank) {
      const double period = std::floor(begin_[series] / period_ + kEqual);
      phases.push_back({.begin = begin_[series] - period * period_,
                        .period = static_cast<std::int64_t>(period),
                        .series = series});
      last = std::max(last, phases.back().period + microbatches);
    }
    // Tasks of equal times, which take none, are in the order in which they wait for each other.
    std::stable_sort(phases.begin(), phases.end(),
                     [](const Phase& a, const Phase& b) { return a.begin < b.begin; });
    auto& order = orders.emplace_back();
    order.reserve(problem_.tasks_of_rank());
    for (std::int64_t period = 0; period < last; ++period) {
      for (const Phase& phase : phases) {
        const std::int64_t microbatch = period - phase.period;
        if (microbatch >= 0 && microbatch < microbatches) order.push_back(phase.series);
      }
    }
  }
  return orders;
}

// Between the longest that was too short and the shortest for which there is a course; as long as
// there is none, a quarter longer.
void Periods::next_period() {
  if (shortest_ == std::numeric_limits<double>::infinity()) {
    period_ *= 1.25;
    return;
  }
  if (shortest_ < too_short_ * 1.003) {
    too_short_ = work_ * (1 - 1e-6);
    patience_ *= 2;
  }
  period_ = std::max(work_, too_short_ + 0.5 * (shortest_ - too_short_));
}

// Makes orders of the course if they may be better than those before, by more the longer it takes
// to make them.
void Periods::offer(const Cost& cost, const std::function<void(const Orders&)>& found) {
  shortest_ = std::min(shortest_, period_);
  const double about = (problem_.microbatches() - 1) * period_ + cost.flight;
  if (about >= offered_ * (1 - kShareOfTask * problem_.tasks())) return;
  const Orders repeated = orders();
  const auto figures = evaluate(problem_, repeated);
  if (!figures || !fits(problem_, *figures)) return;
  offered_ = about;
  found(repeated);
}

void Periods::run(std::uint64_t courses, const std::function<bool()>& stopped,
                  const std::function<void(const Orders&)>& found) {
  if (work_ <= 0) return;
  Cost now = place(delays_);
  double least_excess = now.excess;  // for this period
  std::uint64_t tried = 0;
  for (std::uint64_t i = 0; i < courses; ++i) {
    if (i % kCoursesOfSlice == 0 && stopped()) return;
    Delays varied = delays_;
    vary(varied);
    const Cost then = place(varied);
    // A longer period helps more than patience while there is no course at all.
    const bool none = shortest_ == std::numeric_limits<double>::infinity();
    const std::uint64_t patience = none ? kCoursesOfPeriod / 10 : patience_;
    const double left = 1 - static_cast<double>(tried) / static_cast<double>(patience);
    const double most = -0.3 * left * left * std::log(1 - chance_.share());
    if (weighed(then) <= weighed(now) + most) {
      now = then;
      delays_ = std::move(varied);
    }
    least_excess = std::min(least_excess, then.excess);
    if (then.excess == 0) offer(then, found);
    if (++tried < patience) continue;
    if (least_excess > 0) too_short_ = std::max(too_short_, period_);
    next_period();
    now = place(delays_);
    least_excess = now.excess;
    tried = 0;
  }
}

}  // namespace capo::optimise
