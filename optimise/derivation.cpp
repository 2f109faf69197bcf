#include "optimise/derivation.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>

namespace capo::optimise {

namespace {

// Forwards from the first stage on, and behind each other the halves of backwards from the last.
template <typename Visit>
void in_turn(const Problem& problem, const Visit& visit) {
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    visit(series_of(stage, Half::Forward));
  }
  for (std::size_t stage = problem.stages(); stage-- > 0;) {
    visit(series_of(stage, Half::Backward));
    visit(series_of(stage, Half::Weight));
  }
}

struct Load {
  double head;
  double takes;
  double tail;
};

// The tasks that make the shortest sequence that may be interrupted as long as it is: those that
// run without a break until the last one whose tail ends last, none of which has a lower tail.
Chosen chosen_of(std::vector<Load> loads) {
  std::sort(loads.begin(), loads.end(),
            [](const Load& a, const Load& b) { return a.head < b.head; });
  using Waiting = std::pair<double, double>;  // its tail and what is left of it
  std::priority_queue<Waiting> waiting;
  struct Block {
    double tail;   // that all of it has at least
    double begin;  // since when nothing with less has run
  };
  std::vector<Block> blocks;  // of what runs now, with rising tails
  Chosen best;
  double now = 0;
  for (std::size_t next = 0; next < loads.size() || !waiting.empty();) {
    if (waiting.empty() && loads[next].head > now) {
      now = loads[next].head;
      blocks.clear();
    }
    for (; next < loads.size() && loads[next].head <= now; ++next) {
      waiting.emplace(loads[next].tail, loads[next].takes);
    }
    const auto [tail, left] = waiting.top();
    waiting.pop();
    double begin = now;
    while (!blocks.empty() && blocks.back().tail >= tail) {
      begin = blocks.back().begin;
      blocks.pop_back();
    }
    blocks.push_back({.tail = tail, .begin = begin});
    const bool interrupted = next < loads.size() && loads[next].head < now + left;
    const double until = interrupted ? loads[next].head : now + left;
    if (interrupted) {
      waiting.emplace(tail, left - (until - now));
    } else if (until + tail > best.shown) {
      best = {.head = begin, .tail = tail, .shown = until + tail};
    }
    now = until;
  }
  return best;
}

}  // namespace

Derivation::Derivation(const Problem& problem, std::optional<std::size_t> rank)
    : problem_(problem), m_(problem.microbatches()), own_(rank) {
  heads_.resize(problem.tasks());
  tails_.resize(problem.tasks());
  std::size_t first = 0;
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    const Series& forward = problem.series[series_of(stage, Half::Forward)];
    if (forward.waits_for == kNoSeries && forward.behind.empty()) first = stage;
    pipeline_.push_back(first);
  }
  for (std::uint32_t k = 0; k < m_; ++k) {
    in_turn(problem, [&](SeriesId series) { find_head(series, k); });
  }
  std::vector<SeriesId> turns;
  in_turn(problem, [&](SeriesId series) { turns.push_back(series); });
  for (std::uint32_t k = m_; k-- > 0;) {
    for (std::size_t turn = turns.size(); turn-- > 0;) find_tail(turns[turn], k);
  }
}

std::vector<TaskNumber> Derivation::firsts_of(std::size_t rank) const {
  std::vector<TaskNumber> firsts;
  std::set<std::size_t> seen;
  for (const SeriesId series : problem_.of_rank[rank]) {
    if (half_of(series) != Half::Forward) continue;
    if (seen.insert(pipeline_[stage_of(series)]).second) firsts.push_back(series * m_);
  }
  return firsts;
}

Precede Derivation::precede(SeriesId first, SeriesId second) const {
  const std::size_t a = stage_of(first);
  const std::size_t b = stage_of(second);
  if (pipeline_[a] != pipeline_[b]) return Precede::None;
  if (first == second) return Precede::Earlier;
  const auto if_so = [](bool so) { return so ? Precede::UpTo : Precede::None; };
  const Half half = half_of(second);
  if (half_of(first) == Half::Forward) return if_so(half != Half::Forward || a < b);
  if (half_of(first) == Half::Weight || half == Half::Forward) return Precede::None;
  return if_so(half == Half::Weight ? a >= b : a > b);
}

// The time of all tasks of a task's rank that come before it.
double Derivation::work_before(SeriesId series, std::uint32_t k) const {
  double work = 0;
  for (const SeriesId each : problem_.of_rank[problem_.series[series].rank]) {
    const Precede way = precede(each, series);
    const double count = way == Precede::UpTo ? k + 1 : way == Precede::Earlier ? k : 0;
    work += count * problem_.series[each].takes;
  }
  return work;
}

double Derivation::work_behind(SeriesId series, std::uint32_t k) const {
  double work = 0;
  for (const SeriesId each : problem_.of_rank[problem_.series[series].rank]) {
    const Precede way = precede(series, each);
    const double count = way == Precede::UpTo ? m_ - k : way == Precede::Earlier ? m_ - k - 1 : 0;
    work += count * problem_.series[each].takes;
  }
  return work;
}

// The first forward of a task's own pipeline on its rank.
TaskNumber Derivation::first_before(SeriesId series) const {
  for (const SeriesId each : problem_.of_rank[problem_.series[series].rank]) {
    const bool own = pipeline_[stage_of(each)] == pipeline_[stage_of(series)];
    if (own && half_of(each) == Half::Forward) return each * m_;
  }
  return series * m_;
}

void Derivation::find_head(SeriesId id, std::uint32_t k) {
  const Series& series = problem_.series[id];
  Reached& head = heads_[id * m_ + k];
  if (!own_ || *own_ == series.rank) head.raise(0, By::Ends, {});
  const auto wait = [&](SeriesId first, std::uint32_t of, double lag) {
    const TaskNumber task = first * m_ + of;
    head.raise(heads_[task].value + problem_.series[first].takes + lag, By::Wait, {task});
  };
  if (series.waits_for != kNoSeries) wait(series.waits_for, k, series.lag);
  for (const SeriesId first : series.behind) wait(first, k, 0);
  if (k > 0) wait(id, k - 1, 0);
  const TaskNumber first = first_before(id);
  if (first != id * m_ + k) {
    head.raise(heads_[first].value + work_before(id, k), By::Work, {first});
  }
  if (half_of(id) == Half::Forward && k > 0) raise_by_memory(head, id, k);
}

// When a forward begins, it and all before it hold memory, but for what backwards gave up.
void Derivation::raise_by_memory(Reached& head, SeriesId id, std::uint32_t k) const {
  double held = 0;                                         // by a microbatch, up to this stage
  double least = std::numeric_limits<double>::infinity();  // work that gives up one
  std::vector<std::size_t> stages;
  for (const SeriesId each : problem_.of_rank[problem_.series[id].rank]) {
    if (half_of(each) != Half::Forward || (each != id && precede(each, id) == Precede::None) ||
        each > id) {
      continue;
    }
    const Series& f = problem_.series[each];
    const Series& b = problem_.series[each + 1];
    const Series& w = problem_.series[each + 2];
    if (f.holds <= 0 || b.holds > 0 || w.holds > 0) return;
    stages.push_back(stage_of(each));
    held += f.holds;
    least = std::min(least, (b.takes + w.takes) / f.holds);
    if (b.holds < 0) least = std::min(least, b.takes / -b.holds);
  }
  const double excess = (k + 1) * held - problem_.memory_limit * (1 + 1e-9);
  if (!(excess > 0)) return;
  const auto given_up = static_cast<std::uint32_t>(std::ceil(excess / held - 1e-9));
  if (given_up == 0 || given_up > k) return;
  double ends = std::numeric_limits<double>::infinity();
  std::vector<TaskNumber> from;
  for (const std::size_t stage : stages) {
    const bool at_weight = problem_.series[series_of(stage, Half::Backward)].holds == 0;
    const SeriesId gives = series_of(stage, at_weight ? Half::Weight : Half::Backward);
    from.push_back(gives * m_ + given_up - 1);
    ends = std::min(ends, heads_[from.back()].value + problem_.series[gives].takes);
  }
  head.raise(ends, By::Memory, std::move(from));
  const TaskNumber first = first_before(id);
  head.raise(heads_[first].value + work_before(id, k) + excess * least, By::MemoryWork, {first});
}

void Derivation::find_tail(SeriesId id, std::uint32_t k) {
  const Series& series = problem_.series[id];
  Reached& tail = tails_[id * m_ + k];
  if (!own_ || *own_ == series.rank) {
    tail.raise(0, By::Ends, {});
    tail.raise(work_behind(id, k), By::Work, {});
  }
  const auto awaited = [&](SeriesId next, std::uint32_t of, double lag) {
    const TaskNumber task = next * m_ + of;
    tail.raise(lag + problem_.series[next].takes + tails_[task].value, By::Wait, {task});
  };
  if (series.awaited_by != kNoSeries) {
    awaited(series.awaited_by, k, problem_.series[series.awaited_by].lag);
  }
  for (const SeriesId next : series.before) awaited(next, k, 0);
  if (k + 1 < m_) awaited(id, k + 1, 0);
}

Chosen chosen_of(const Problem& problem, const Derivation& derivation, std::size_t rank) {
  std::vector<Load> loads;
  loads.reserve(problem.tasks_of_rank());
  for (const SeriesId series : problem.of_rank[rank]) {
    for (std::uint32_t k = 0; k < problem.microbatches(); ++k) {
      const TaskNumber task = series * problem.microbatches() + k;
      loads.push_back({derivation.of(Side::Head, task).value, problem.series[series].takes,
                       derivation.of(Side::Tail, task).value});
    }
  }
  Chosen chosen = chosen_of(std::move(loads));
  chosen.rank = rank;
  return chosen;
}

}  // namespace capo::optimise
