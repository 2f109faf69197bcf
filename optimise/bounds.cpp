#include "optimise/bounds.h"

#include "optimise/calls.h"
#include "optimise/jackson.h"
#include "optimise/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace capo::optimise {

namespace {

/// Narrowing of so many states is checked by tools/check_bound.py within about ten seconds.
constexpr std::uint64_t kStatesOfCertificate = 2'000'000;
/// The ends of a step have so many microbatches for each rank.
constexpr std::int32_t kMicrobatchesOfEnds = 8;

// A step of fewer microbatches, where there are very many: the first half of them has the heads of
// as many of the step's, and the second half the tails of its last ones, since heads look back and
// tails ahead alone.
Problem ends_of(const Problem& problem) {
  Problem ends = problem;
  ends.frame.microbatches =
      std::min(problem.frame.microbatches, kMicrobatchesOfEnds * problem.frame.ranks);
  return ends;
}

// The shortest sequence of a rank's tasks, none before its head. `windows` are of the step's ends;
// of the microbatches between these each task stands behind the first half's tasks of its series,
// and before the second half's.
double machine(const Problem& problem, const Problem& ends, const Windows& windows,
               std::size_t rank) {
  const std::uint32_t half = ends.microbatches() / 2;
  const double left_out = problem.microbatches() - ends.microbatches();
  std::vector<Job> jobs;
  jobs.reserve(ends.tasks_of_rank() + problem.of_rank[rank].size());
  for (const SeriesId series : problem.of_rank[rank]) {
    const double takes = problem.series[series].takes;
    const TaskNumber first = series * ends.microbatches();
    for (std::uint32_t k = 0; k < ends.microbatches(); ++k) {
      const double head = windows.head(first + k) + (k < half ? 0 : left_out * takes);
      const double tail = windows.tail(first + k) + (k < half ? left_out * takes : 0);
      jobs.push_back({head, takes, tail});
    }
    if (left_out == 0) continue;
    const double head = windows.head(first + half);
    jobs.push_back({head, left_out * takes, windows.tail(first + half - 1)});
  }
  return jackson(std::move(jobs));
}

void raise(Bound& bound, Bound other) {
  other.value *= 1 - 1e-12;
  if (other.value > bound.value) bound = std::move(other);
}

void raise(Bound& bound, double value, const char* by, std::size_t rank) {
  raise(bound, {.value = value, .by = by, .rank = static_cast<std::int32_t>(rank)});
}

// Returns for each stage how long it is from the beginning of a microbatch's forward to the end of
// its backward, at least.
std::vector<double> residences(const Problem& problem) {
  std::vector<double> all(problem.stages(), 0);
  for (std::size_t stage = problem.stages(); stage-- > 0;) {
    const Series& forward = problem.series[series_of(stage, Half::Forward)];
    const Series& backward = problem.series[series_of(stage, Half::Backward)];
    all[stage] = forward.takes + backward.takes;
    const bool goes_on =
        backward.waits_for != kNoSeries ||
        std::any_of(backward.behind.begin(), backward.behind.end(),
                    [](SeriesId first) { return half_of(first) == Half::Backward; });
    if (!goes_on) continue;
    const Series& next = problem.series[series_of(stage + 1, Half::Forward)];
    all[stage] += all[stage + 1] + (next.waits_for != kNoSeries ? next.lag : 0) +
                  (backward.waits_for != kNoSeries ? backward.lag : 0);
  }
  return all;
}

// Adds up what all microbatches of a rank hold, times how long; 0 if some gives up more than it
// took.
double held_over_time(const Problem& problem, const std::vector<double>& residence,
                      std::size_t rank) {
  double sum = 0;
  for (const SeriesId id : problem.of_rank[rank]) {
    if (half_of(id) != Half::Forward) continue;
    const std::size_t stage = stage_of(id);
    const Series& backward = problem.series[series_of(stage, Half::Backward)];
    const Series& weight = problem.series[series_of(stage, Half::Weight)];
    const double taken = problem.series[id].holds;
    const double kept = -weight.holds;
    if (taken < 0 || kept < 0) return 0;
    sum += taken * residence[stage] + backward.during * backward.takes + kept * weight.takes;
  }
  return sum * problem.microbatches();
}

// Raises a bound as far as `refuted` tells of what is above it: by ever larger steps, then by
// halves of what is left. Times are counted in steps. If a makespan is a whole number of units, one
// that is above a step is at least the next one.
double raised(double low, double next, const std::function<bool(double)>& refuted) {
  double high = low;
  for (double jump = std::max(1.0, std::floor(low * 2e-3)); refuted(high); jump *= 2) {
    low = high + next;
    high = low + jump;
  }
  while (high - low > 1 - next) {
    const double middle = std::floor((low + high) / 2);
    if (refuted(middle)) {
      low = middle + next;
    } else {
      high = middle;
    }
  }
  return low;
}

void raise_by_narrowing(Bound& bound, const Problem& problem, std::optional<std::size_t> own,
                        std::uint64_t budget, const std::function<bool()>& stopped) {
  const double unit = unit_of(problem);
  if (bound.value <= 0 || stopped()) return;
  Narrowing narrowing(problem, own, stopped);
  if (narrowing.states() == 0 || narrowing.states() > budget) return;
  const double step = unit > 0 ? unit : 1e-5 * bound.value;
  const double next = unit > 0 ? 1 : 0;
  const double steps = bound.value / step;
  const double low = unit > 0 ? std::ceil(steps - 1e-6 - 1e-11 * steps) : std::floor(steps);
  const double first = raised(low, next, [&](double until) {
    return budget >= narrowing.states() && narrowing.refutes(until * step, budget);
  });
  const double second = raised(first, next, [&](double until) {
    return budget >= narrowing.states() && narrowing.refutes_by_halves(until * step, budget);
  });
  raise(bound, second * step, "narrowing", own.value_or(0));
}

}  // namespace

double unit_of(const Problem& problem) {
  constexpr double kPlaces = 1e6;
  std::uint64_t unit = 0;
  for (const Series& series : problem.series) {
    for (const double time : {series.takes, series.lag}) {
      const double scaled = std::round(time * kPlaces);
      if (scaled > 1e11 || std::abs(time * kPlaces - scaled) > 1e-9 + 1e-15 * scaled) return 0;
      unit = std::gcd(unit, static_cast<std::uint64_t>(scaled));
    }
  }
  return static_cast<double>(unit) / kPlaces;
}

LowerBounds lower_bounds(const Problem& problem, std::uint64_t states,
                         const std::function<bool()>& stopped) {
  if (problem.fuses()) return lower_bounds(with_least_weights(problem), states, stopped);
  LowerBounds bounds;
  const Problem ends = ends_of(relaxed(problem));
  const Windows all(ends, std::nullopt);
  const std::vector<double> residence = residences(problem);
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    raise(bounds.makespan, machine(problem, ends, all, rank), "machine", rank);
    raise(bounds.span, machine(problem, ends, Windows(ends, rank), rank), "machine", rank);
    const double held = held_over_time(problem, residence, rank) / problem.memory_limit;
    raise(bounds.makespan, all.begin(rank) + held, "memory", rank);
    raise(bounds.span, held, "memory", rank);
    for (const SeriesId id : problem.of_rank[rank]) {
      const double path = residence[stage_of(id)];
      raise(bounds.makespan, path, "path", rank);
      raise(bounds.span, path, "path", rank);
    }
  }
  raise(bounds.makespan, problem.closed_forms.makespan);
  raise(bounds.span, problem.closed_forms.span);
  raise_by_narrowing(bounds.makespan, problem, std::nullopt, states, stopped);
  const std::size_t ranks = problem.of_rank.size();
  for (std::size_t rank = 0; rank < ranks && !stopped(); ++rank) {
    raise_by_narrowing(bounds.span, problem, rank, states / ranks, stopped);
  }
  return bounds;
}

std::optional<Refuted> refuted_plainly(const Problem& problem, std::optional<std::size_t> own,
                                       double above) {
  const double unit = unit_of(problem);
  if (unit <= 0) return std::nullopt;
  Narrowing narrowing(problem, own);
  if (narrowing.states() == 0 || narrowing.states() > kStatesOfCertificate) return std::nullopt;
  std::uint64_t budget = kStatesOfBounds;
  const double low = std::floor(above / unit);
  const double first = raised(low, 1, [&](double until) {
    return budget >= narrowing.states() &&
           narrowing.refutes(until * unit, budget, Narrowing::From::Nothing);
  });
  if (first <= low) return std::nullopt;
  return Refuted{.unit = unit, .units = static_cast<std::uint64_t>(first) - 1};
}

std::string words_for(const Bound& bound) {
  const std::string& by = bound.by;
  if (by == "path") return "one microbatch's way to the last stage and back";
  if (by.empty()) return "nothing";
  if (by == "exhaustive") return "a search of all orders";
  if (by == "any path") {
    return "one microbatch's way through all stages and back, for any placement";
  }
  if (by == "any work") {
    return "the work of each rank, and what must come before and behind it, for any placement";
  }
  if (by == "any memory") {
    return "the time for which microbatches are held, and the memory of all ranks, for any "
           "placement";
  }
  if (by == "each variant") return "the bounds of all variants that there are, one by one";
  if (by == "narrowing") {
    return "the times that work, memory and what waits for it leave for each task";
  }
  const std::string rank = fmt::format("rank {}", bound.rank);
  if (by == "memory" || by == "L3") {
    return "the time for which microbatches are held, and the memory of " + rank;
  }
  if (by == "machine" || by == "L2") {
    return "the work of " + rank + ", and what must come before and behind each of its tasks";
  }
  if (by == "L1") {
    return "the work of " + rank + ", and the idle time that its memory leaves no task for";
  }
  return "the work of " + rank + ", and what must come before it";
}

double gap_of(double value, double bound) {
  return bound > 0 ? std::max(0.0, value / bound - 1) : 0;
}

const Bound& bound_of(const LowerBounds& bounds, Objective objective) {
  return objective == Objective::Makespan ? bounds.makespan : bounds.span;
}

void raise_to(LowerBounds& bounds, Objective objective, double value) {
  Bound& bound = objective == Objective::Makespan ? bounds.makespan : bounds.span;
  if (value > bound.value) bound = {.value = value, .by = "exhaustive"};
}

}  // namespace capo::optimise
