// Shows that no orders end by a given time, by narrowing the times at which tasks may begin.
//
// Each task begins between its head and the last time at which the rest behind it still fits. A
// rank is looked at by itself: a state is how many forwards, input halves and weight gradients have
// run on it, all chunks together; from state to state the next one of a kind runs, no earlier and
// no later than the next one of its kind may, a forward only if the memory has room, a backward
// only if enough forwards have run, and if there is room for what it makes again. The earliest time
// at which each state is reached, and the latest from which the rest fits, say when the n-th task
// of a kind may really begin.
//
//   states of a rank with room for two     F F B W F ...     F may begin at 4 at the earliest,
//                                          F B W F B ...     since a W stands before the third F
//
// The times of single tasks go on to those that wait for them on other ranks, and ranks are
// looked at again until nothing changes. If a rank has no way from its first to its last state, no
// orders end by that time: a bound (constraint programmers call it a destructive one).
//
// Tasks of one kind on a rank are told apart by their turn alone, whatever their chunk, which
// leaves something out but nothing in: so the ranks whose chunks cost or hold different amounts are
// not looked at. The work is counted in states, and given up above a budget. Tested by
// narrowing_test.cpp.

#include "optimise/windows.h"

#include "core/base/index.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace capo::optimise {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
/// Ranks are looked at so often at most: what is left to change is little by then.
constexpr int kRounds = 12;
/// Ranks are looked at so often for a half of a task's time, which is halved as long as it is more
/// than this share of what the task takes.
constexpr int kRoundsOfHalf = 4;
constexpr double kNarrowEnough = 0.1;
/// A rank with more states than this is not looked at: they take 16 bytes each.
constexpr std::uint64_t kMostStates = std::uint64_t{1} << 22U;

constexpr std::size_t kForwardKind = 0;
constexpr std::size_t kBackwardKind = 1;
constexpr std::size_t kWeightKind = 2;

}  // namespace

Narrowing::Narrowing(const Problem& problem, std::optional<std::size_t> own,
                     std::function<bool()> stopped)
    : problem_(problem),
      stopped_(std::move(stopped)),
      own_(own),
      m_(problem.microbatches()),
      of_kind_(problem.tasks_of_rank() / 3),
      passes_(problem.frame.topology == Topology::Bidirectional ? 1
                                                                : as_index(problem.frame.chunks)),
      first_(problem.tasks(), -kUnlimited),
      last_(problem.tasks(), kUnlimited) {
  std::vector<std::size_t> passed(problem.of_rank.size(), 0);
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    pass_.push_back(passed[problem.series[series_of(stage, Half::Forward)].rank]++ % passes_);
    by_turn_.push_back(series_of(stage, Half::Forward));
  }
  for (std::size_t stage = problem.stages(); stage-- > 0;) {
    by_turn_.push_back(series_of(stage, Half::Backward));
  }
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    if (own && *own != rank) continue;
    auto found = rank_of(rank);
    if (!found) continue;
    looked_at_.push_back(rank);
    ranks_.push_back(*std::move(found));
    states_ += of_kind_ * ranks_.back().states() / 2;
  }
}

// nullopt if its chunks differ, if memory is taken by anything but forwards, or if there are too
// many states.
std::optional<Narrowing::Rank> Narrowing::rank_of(std::size_t rank) const {
  Rank found;
  for (const SeriesId id : problem_.of_rank[rank]) {
    const Series& series = problem_.series[id];
    const Series& same = problem_.series[problem_.of_rank[rank][id % 3]];
    if (series.takes != same.takes || series.holds != same.holds || series.during != same.during) {
      return std::nullopt;
    }
    if (series.holds < 0 && half_of(id) == Half::Forward) return std::nullopt;
    if (series.holds > 0 && half_of(id) != Half::Forward) return std::nullopt;
    found.takes[id % 3] = series.takes;
    found.holds[id % 3] = series.held_behind(0);
    found.during = std::max(found.during, series.during);
  }
  // All that a forward takes is held until its backward, and the rest until its weight gradient. If
  // more is given up than was taken, any number may be open.
  const double rest = found.holds[kForwardKind] + found.holds[kBackwardKind];
  const bool any =
      rest + found.holds[kWeightKind] < -1e-12 * (found.holds[kForwardKind] + found.during);
  const auto most = [&](double each) {
    const double fit = each > 0 ? problem_.memory_limit * (1 + 1e-9) / each : kUnlimited;
    if (any || fit >= static_cast<double>(of_kind_)) return of_kind_;
    return static_cast<std::size_t>(fit);
  };
  found.fewer = most(found.holds[kForwardKind]);
  found.waiting = most(rest);
  if (found.states() > kMostStates / (of_kind_ + 1)) return std::nullopt;
  return found;
}

// So many forwards have run before so many backwards: a microbatch runs back over all its chunks.
std::size_t Narrowing::forwards_before(std::size_t backwards) const {
  return (backwards + passes_ - 1) / passes_ * passes_;
}

// All earlier microbatches have run in this chunk, and all up to this one in the chunks before it.
std::size_t Narrowing::earliest_turn(SeriesId series, std::uint32_t k) const {
  const std::size_t pass = pass_[stage_of(series)];
  const std::size_t before = half_of(series) == Half::Forward ? pass : passes_ - 1 - pass;
  return (before + 1) * (k + std::size_t{1}) - 1;
}

std::size_t Narrowing::latest_turn(SeriesId series, std::uint32_t k) const {
  const std::size_t pass = pass_[stage_of(series)];
  const std::size_t before = half_of(series) == Half::Forward ? pass : passes_ - 1 - pass;
  return of_kind_ - (passes_ - before) * (m_ - k);
}

bool Narrowing::has_room(const Rank& rank, std::size_t f, std::size_t b, std::size_t w,
                         double during) const {
  return problem_.fits(static_cast<double>(f) * rank.holds[kForwardKind] +
                       static_cast<double>(b) * rank.holds[kBackwardKind] +
                       static_cast<double>(w) * rank.holds[kWeightKind] + during);
}

bool Narrowing::may_run_back(const Rank& rank, std::size_t f, std::size_t b, std::size_t w) const {
  if (f == b || b - w == rank.waiting || forwards_before(b + 1) > f) return false;
  return rank.during <= 0 || has_room(rank, f, b, w, rank.during);
}

void Narrowing::begin(double until) {
  until_ = until;
  slack_ = 1e-10 * until;
  for (Rank& rank : ranks_) {
    for (std::size_t kind = 0; kind < 3; ++kind) {
      rank.turns.first[kind].assign(of_kind_, -kUnlimited);
      rank.turns.last[kind].assign(of_kind_, kUnlimited);
    }
  }
}

void Narrowing::begin_with_windows() {
  if (!windows_) {
    relaxed_ = relaxed(problem_);
    windows_.emplace(*relaxed_, own_);
  }
  for (SeriesId id = 0; id < problem_.series.size(); ++id) {
    for (std::uint32_t k = 0; k < m_; ++k) {
      const TaskNumber task = id * m_ + k;
      first_[task] = windows_->head(task);
      last_[task] = until_ - windows_->tail(task) - problem_.series[id].takes;
    }
  }
}

void Narrowing::begin_with_nothing() {
  for (SeriesId id = 0; id < problem_.series.size(); ++id) {
    const Series& series = problem_.series[id];
    const bool counts = !own_ || *own_ == series.rank;
    const auto begin = static_cast<std::ptrdiff_t>(id) * m_;
    std::fill_n(first_.begin() + begin, m_, counts ? 0 : -kUnlimited);
    std::fill_n(last_.begin() + begin, m_, counts ? until_ - series.takes : kUnlimited);
  }
}

// The n-th task of a kind begins no earlier than the n-th earliest, whichever it is.
void Narrowing::take_over(std::size_t rank) {
  std::array<std::vector<double>, 3> first;
  std::array<std::vector<double>, 3> last;
  for (const SeriesId id : problem_.of_rank[looked_at_[rank]]) {
    const auto begin = static_cast<std::ptrdiff_t>(id) * m_;
    first[id % 3].insert(first[id % 3].end(), first_.begin() + begin, first_.begin() + begin + m_);
    last[id % 3].insert(last[id % 3].end(), last_.begin() + begin, last_.begin() + begin + m_);
  }
  Turns& turns = ranks_[rank].turns;
  for (std::size_t kind = 0; kind < 3; ++kind) {
    std::sort(first[kind].begin(), first[kind].end());
    std::sort(last[kind].begin(), last[kind].end());
    for (std::size_t n = 0; n < of_kind_; ++n) {
      turns.first[kind][n] = std::max(turns.first[kind][n], first[kind][n]);
      turns.last[kind][n] = std::min(turns.last[kind][n], last[kind][n]);
    }
  }
}

// Returns whether a task's times became narrower.
bool Narrowing::hand_back(std::size_t rank) {
  bool changed = false;
  const Turns& turns = ranks_[rank].turns;
  for (const SeriesId id : problem_.of_rank[looked_at_[rank]]) {
    if (half_of(id) == Half::Weight) continue;
    for (std::uint32_t k = 0; k < m_; ++k) {
      const TaskNumber task = id * m_ + k;
      const double first = turns.first[id % 3][earliest_turn(id, k)];
      const double last = turns.last[id % 3][latest_turn(id, k)];
      changed = changed || first > first_[task] + slack_ || last < last_[task] - slack_;
      first_[task] = std::max(first_[task], first);
      last_[task] = std::min(last_[task], last);
    }
  }
  return changed;
}

// Fills reached_: states in the order of forwards, then from few backwards to many.
void Narrowing::reach(const Rank& rank) {
  reached_.assign((of_kind_ + 1) * rows_ * width_, kUnlimited);
  reached_[0] = -kUnlimited;
  const Turns& turns = rank.turns;
  const auto go = [&](std::size_t state, double now, std::size_t kind, std::size_t n) {
    const double begin = std::max(now, turns.first[kind][n]);
    if (begin > turns.last[kind][n] + slack_) return;
    reached_[state] = std::min(reached_[state], begin + rank.takes[kind]);
  };
  for (std::size_t f = 0; f <= of_kind_; ++f) {
    for (std::size_t fewer = std::min(f, rank.fewer) + 1; fewer-- > 0;) {
      for (std::size_t waiting = std::min(f - fewer, rank.waiting) + 1; waiting-- > 0;) {
        const double now = reached_[at(f, fewer, waiting)];
        if (now == kUnlimited) continue;
        const std::size_t b = f - fewer;
        const std::size_t w = b - waiting;
        if (f < of_kind_ && fewer < rank.fewer && has_room(rank, f + 1, b, w, 0)) {
          go(at(f + 1, fewer + 1, waiting), now, kForwardKind, f);
        }
        if (may_run_back(rank, f, b, w)) {
          go(at(f, fewer - 1, waiting + 1), now, kBackwardKind, b);
        }
        if (waiting > 0) go(at(f, fewer, waiting - 1), now, kWeightKind, w);
      }
    }
  }
}

// Returns false if the rank has no way to its last state in time.
bool Narrowing::narrow(Rank& rank) {
  rows_ = rank.fewer + 1;
  width_ = rank.waiting + 1;
  reach(rank);
  if (reached_[at(of_kind_, 0, 0)] > until_ + slack_) return false;
  from_.assign(reached_.size(), -kUnlimited);
  from_[at(of_kind_, 0, 0)] = until_;
  Turns then;
  for (std::size_t kind = 0; kind < 3; ++kind) {
    then.first[kind].assign(of_kind_, kUnlimited);
    then.last[kind].assign(of_kind_, -kUnlimited);
  }
  const Turns& turns = rank.turns;
  const auto go = [&](std::size_t state, std::size_t next, std::size_t kind, std::size_t n) {
    const double begin = std::max(reached_[state], turns.first[kind][n]);
    const double latest = std::min(from_[next] - rank.takes[kind], turns.last[kind][n]);
    if (begin > latest + slack_) return;
    from_[state] = std::max(from_[state], latest);
    then.first[kind][n] = std::min(then.first[kind][n], begin);
    then.last[kind][n] = std::max(then.last[kind][n], latest);
  };
  for (std::size_t f = of_kind_ + 1; f-- > 0;) {
    for (std::size_t fewer = 0; fewer <= std::min(f, rank.fewer); ++fewer) {
      for (std::size_t waiting = 0; waiting <= std::min(f - fewer, rank.waiting); ++waiting) {
        const std::size_t state = at(f, fewer, waiting);
        if (reached_[state] == kUnlimited) continue;
        const std::size_t b = f - fewer;
        const std::size_t w = b - waiting;
        if (f < of_kind_ && fewer < rank.fewer && has_room(rank, f + 1, b, w, 0)) {
          go(state, at(f + 1, fewer + 1, waiting), kForwardKind, f);
        }
        if (may_run_back(rank, f, b, w)) {
          go(state, at(f, fewer - 1, waiting + 1), kBackwardKind, b);
        }
        if (waiting > 0) go(state, at(f, fewer, waiting - 1), kWeightKind, w);
      }
    }
  }
  if (from_[0] == -kUnlimited) return false;
  rank.turns = std::move(then);
  return true;
}

// A task begins later than those that it waits for, and those begin earlier. Returns whether all
// tasks still have a time.
bool Narrowing::propagate() {
  const auto later = [&](TaskNumber task, TaskNumber before, double takes) {
    first_[task] = std::max(first_[task], first_[before] + takes);
  };
  const auto earlier = [&](TaskNumber task, TaskNumber behind, double takes) {
    last_[task] = std::min(last_[task], last_[behind] - takes);
  };
  for (const SeriesId id : by_turn_) {
    const Series& series = problem_.series[id];
    const SeriesId elsewhere = series.waits_for;
    for (std::uint32_t k = 0; k < m_; ++k) {
      const TaskNumber task = id * m_ + k;
      if (k > 0) later(task, task - 1, series.takes);
      for (const SeriesId each : series.behind) {
        later(task, each * m_ + k, problem_.series[each].takes);
      }
      if (elsewhere == kNoSeries) continue;
      later(task, elsewhere * m_ + k, problem_.series[elsewhere].takes + series.lag);
    }
  }
  for (std::size_t turn = by_turn_.size(); turn-- > 0;) {
    const SeriesId id = by_turn_[turn];
    const Series& series = problem_.series[id];
    const SeriesId elsewhere = series.awaited_by;
    for (std::uint32_t k = m_; k-- > 0;) {
      const TaskNumber task = id * m_ + k;
      if (k + 1 < m_) earlier(task, task + 1, series.takes);
      for (const SeriesId each : series.before) earlier(task, each * m_ + k, series.takes);
      if (elsewhere != kNoSeries) {
        earlier(task, elsewhere * m_ + k, series.takes + problem_.series[elsewhere].lag);
      }
      if (first_[task] > last_[task] + slack_) return false;
    }
  }
  return true;
}

// Narrows until nothing changes, or so often. Returns whether all tasks still have a time.
bool Narrowing::settle(int rounds, std::uint64_t& budget) {
  if (!propagate()) return false;
  for (int round = 0; round < rounds && budget >= states_; ++round) {
    budget = stopped_() ? 0 : budget - states_;
    bool changed = false;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      take_over(rank);
      if (!narrow(ranks_[rank])) return false;
      changed = hand_back(rank) || changed;
    }
    if (!propagate()) return false;
    if (!changed) return true;
  }
  return true;
}

bool Narrowing::refutes(double until, std::uint64_t& budget, From from) {
  begin(until);
  from == From::Windows ? begin_with_windows() : begin_with_nothing();
  return !settle(kRounds, budget);
}

// If a task cannot begin in one half of its time, it begins in the other. Returns whether all tasks
// still have a time.
bool Narrowing::halve(TaskNumber task, std::uint64_t& budget, bool& changed) {
  for (const Part part : {Part::Early, Part::Late}) {
    const double middle = 0.5 * (first_[task] + last_[task]);
    const double takes = problem_.series[task / m_].takes;
    if (last_[task] - first_[task] < kNarrowEnough * takes + slack_) return true;
    const std::vector<double> first = first_;
    const std::vector<double> last = last_;
    const std::vector<Rank> ranks = ranks_;
    (part == Part::Early ? last_ : first_)[task] = middle;
    const bool possible = settle(kRoundsOfHalf, budget);
    first_ = first;
    last_ = last;
    ranks_ = ranks;
    if (possible) continue;
    (part == Part::Early ? first_ : last_)[task] = middle;
    changed = true;
    if (!settle(kRounds, budget)) return false;
  }
  return true;
}

bool Narrowing::refutes_by_halves(double until, std::uint64_t& budget) {
  if (refutes(until, budget)) return true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const SeriesId series : by_turn_) {
      for (std::uint32_t k = 0; k < m_; ++k) {
        if (budget < 4 * kRounds * states_) return false;
        if (!halve(series * m_ + k, budget, changed)) return true;
      }
    }
  }
  return false;
}

}  // namespace capo::optimise
