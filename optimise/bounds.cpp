#include "optimise/bounds.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace capo::optimise {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Job {
  double head;
  double takes;
  double tail;
};

// The length of the shortest sequence of jobs that may be interrupted.
double jackson(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
  using Waiting = std::pair<double, double>;  // its tail and what is left of it
  std::priority_queue<Waiting> waiting;
  double now = 0;
  double last = 0;
  for (std::size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next) {
      waiting.emplace(jobs[next].tail, jobs[next].takes);
    }
    auto [tail, left] = waiting.top();
    waiting.pop();
    const bool interrupted = next < jobs.size() && jobs[next].head < now + left;
    const double until = interrupted ? jobs[next].head : now + left;
    if (interrupted) {
      waiting.emplace(tail, left - (until - now));
    } else {
      last = std::max(last, until + tail);
    }
    now = until;
  }
  return last;
}

// The stages of a rank that one pipeline passes, from the first.
struct Passed {
  std::vector<std::size_t> stages;
  double forward = 0;   // time of a microbatch over all of them
  double backward = 0;  // the input halves
  double weight = 0;
};

/// Heads and tails of all tasks, counted for the makespan or for the span of one rank.
class Windows {
 public:
  /// `rank`: whose span it is; nullopt: the makespan.
  Windows(const Problem& problem, std::optional<std::size_t> rank)
      : problem_(problem), m_(problem.microbatches()), own_(rank) {
    head_.assign(problem.tasks(), kNever);
    tail_.assign(problem.tasks(), kNever);
    find_pipelines();
    for (std::uint32_t k = 0; k < m_; ++k) heads_of(k);
    for (std::uint32_t k = m_; k-- > 0;) tails_of(k);
  }

  [[nodiscard]] double machine(std::size_t rank) const {
    std::vector<Job> jobs;
    jobs.reserve(problem_.tasks_of_rank());
    for (const SeriesId series : problem_.of_rank[rank]) {
      for (std::uint32_t k = 0; k < m_; ++k) {
        const TaskNumber task = series * m_ + k;
        jobs.push_back({head_[task], problem_.series[series].takes, tail_[task]});
      }
    }
    return jackson(std::move(jobs));
  }

  /// When the rank's first task begins at the earliest.
  [[nodiscard]] double begin(std::size_t rank) const {
    double first = std::numeric_limits<double>::infinity();
    for (const SeriesId series : problem_.of_rank[rank]) {
      first = std::min(first, head_[series * m_]);
    }
    return first;
  }

 private:
  [[nodiscard]] const Series& series(std::size_t stage, Half half) const {
    return problem_.series[series_of(stage, half)];
  }
  [[nodiscard]] TaskNumber task(std::size_t stage, Half half, std::uint32_t k) const {
    return series_of(stage, half) * m_ + k;
  }
  [[nodiscard]] bool counts(std::size_t rank) const { return !own_ || *own_ == rank; }

  // Stages of one pipeline follow each other: the first of each waits for no forward.
  void find_pipelines() {
    for (std::size_t stage = 0; stage < problem_.stages(); ++stage) {
      const Series& forward = series(stage, Half::Forward);
      const bool first = forward.waits_for == kNoSeries && forward.behind.empty();
      if (first) passed_.emplace_back(problem_.of_rank.size());
      pipeline_.push_back(passed_.size() - 1);
      Passed& passed = passed_.back()[forward.rank];
      passed.stages.push_back(stage);
      passed.forward += forward.takes;
      passed.backward += series(stage, Half::Backward).takes;
      passed.weight += series(stage, Half::Weight).takes;
    }
  }

  // The earliest time at which the rank of a task has run all of `work`.
  [[nodiscard]] double after(std::size_t rank, double work) const {
    if (!counts(rank)) return kNever;
    return (own_ ? 0 : first_of_rank(rank)) + work;
  }

  // Forwards of microbatch 0 have their heads before anything else asks for them.
  [[nodiscard]] double first_of_rank(std::size_t rank) const {
    double first = std::numeric_limits<double>::infinity();
    for (const auto& pipeline : passed_) {
      if (pipeline[rank].stages.empty()) continue;
      const TaskNumber number = task(pipeline[rank].stages.front(), Half::Forward, 0);
      first = std::min(first, std::max(0.0, head_[number]));
    }
    return first;
  }

  void raise(double& head, const Series& of, std::uint32_t k) const {
    if (of.waits_for == kNoSeries) return;
    const SeriesId first = of.waits_for;
    head = std::max(head, head_[first * m_ + k] + problem_.series[first].takes + of.lag);
  }

  // Before the k-th forward of a stage begins, enough must have been given up, which takes time.
  void raise_by_memory(double& head, std::size_t stage, std::size_t rank, std::uint32_t k,
                       double forwards) const {
    const Passed& passed = passed_[pipeline_[stage]][rank];
    double held = 0;
    double least = std::numeric_limits<double>::infinity();  // work that gives up one
    bool regular = true;
    for (const std::size_t each : passed.stages) {
      const Series& f = series(each, Half::Forward);
      const Series& b = series(each, Half::Backward);
      const Series& w = series(each, Half::Weight);
      regular = regular && f.holds > 0 && b.holds <= 0 && w.holds <= 0;
      if (each <= stage) held += f.holds;
      least = std::min(least, (b.takes + w.takes) / f.holds);
      if (b.holds < 0) least = std::min(least, b.takes / -b.holds);
    }
    const double excess = (k + 1) * held - problem_.memory_limit * (1 + 1e-9);
    if (!regular || excess <= 0) return;
    const auto given_up = static_cast<std::uint32_t>(std::ceil(excess / held - 1e-9));
    // If not even one microbatch fits, there are no orders, and any head is right.
    if (given_up == 0 || k == 0) return;
    const std::uint32_t last = std::min(given_up, k) - 1;
    double ends = std::numeric_limits<double>::infinity();
    for (const std::size_t each : passed.stages) {
      if (each > stage) continue;
      const bool at_weight = series(each, Half::Backward).holds == 0;
      const Half half = at_weight ? Half::Weight : Half::Backward;
      ends = std::min(ends, head_[task(each, half, last)] + series(each, half).takes);
    }
    head = std::max(head, ends);
    head = std::max(head, after(rank, forwards + excess * least));
  }

  void heads_of(std::uint32_t k) {
    for (std::size_t stage = 0; stage < problem_.stages(); ++stage) {
      const Series& forward = series(stage, Half::Forward);
      const std::size_t rank = forward.rank;
      double& head = head_[task(stage, Half::Forward, k)];
      if (counts(rank)) head = 0;
      raise(head, forward, k);
      double run = k * forward.takes;
      for (const std::size_t each : passed_[pipeline_[stage]][rank].stages) {
        if (each >= stage) break;
        const TaskNumber before = task(each, Half::Forward, k);
        head = std::max(head, head_[before] + series(each, Half::Forward).takes);
        run += (k + 1) * series(each, Half::Forward).takes;
      }
      if (k > 0) {
        head = std::max(head, head_[task(stage, Half::Forward, k - 1)] + forward.takes);
        head = std::max(head, after(rank, run));
      }
      raise_by_memory(head, stage, rank, k, run);
    }
    for (std::size_t stage = problem_.stages(); stage-- > 0;) backward_heads(stage, k);
  }

  void backward_heads(std::size_t stage, std::uint32_t k) {
    const Series& forward = series(stage, Half::Forward);
    const Series& backward = series(stage, Half::Backward);
    const std::size_t rank = forward.rank;
    double& head = head_[task(stage, Half::Backward, k)];
    raise(head, backward, k);
    head = std::max(head, head_[task(stage, Half::Forward, k)] + forward.takes);
    double run = k * backward.takes;
    const Passed& passed = passed_[pipeline_[stage]][rank];
    run += (k + 1) * passed.forward;
    for (const std::size_t each : passed.stages) {
      if (each <= stage) continue;
      const TaskNumber before = task(each, Half::Backward, k);
      head = std::max(head, head_[before] + series(each, Half::Backward).takes);
      run += (k + 1) * series(each, Half::Backward).takes;
    }
    if (k > 0) head = std::max(head, head_[task(stage, Half::Backward, k - 1)] + backward.takes);
    head = std::max(head, after(rank, run));
    double& weight_head = head_[task(stage, Half::Weight, k)];
    weight_head = head + backward.takes;
    if (k > 0) {
      const double takes = series(stage, Half::Weight).takes;
      weight_head = std::max(weight_head, head_[task(stage, Half::Weight, k - 1)] + takes);
    }
  }

  // A task is followed by what waits for it elsewhere.
  void raise_tail(double& tail, const Series& of, std::uint32_t k) const {
    if (of.awaited_by == kNoSeries) return;
    const Series& next = problem_.series[of.awaited_by];
    tail = std::max(tail, next.lag + next.takes + tail_[of.awaited_by * m_ + k]);
  }

  void tails_of(std::uint32_t k) {
    const double left = m_ - k;  // microbatches from this one on
    for (std::size_t stage = 0; stage < problem_.stages(); ++stage) {
      const Series& backward = series(stage, Half::Backward);
      const Series& weight = series(stage, Half::Weight);
      const std::size_t rank = backward.rank;
      if (counts(rank)) {
        double rest = (left - 1) * backward.takes + left * weight.takes;
        for (const std::size_t each : passed_[pipeline_[stage]][rank].stages) {
          if (each >= stage) break;
          rest += left * (series(each, Half::Backward).takes + series(each, Half::Weight).takes);
        }
        tail_[task(stage, Half::Weight, k)] = (left - 1) * weight.takes;
        tail_[task(stage, Half::Backward, k)] = rest;
      }
      double& tail = tail_[task(stage, Half::Backward, k)];
      raise_tail(tail, backward, k);
      for (const std::size_t each : passed_[pipeline_[stage]][rank].stages) {
        if (each >= stage) break;
        tail = std::max(tail,
                        series(each, Half::Backward).takes + tail_[task(each, Half::Backward, k)]);
      }
      if (k + 1 < m_) {
        tail = std::max(tail, backward.takes + tail_[task(stage, Half::Backward, k + 1)]);
      }
    }
    for (std::size_t stage = problem_.stages(); stage-- > 0;) forward_tail(stage, k, left);
  }

  void forward_tail(std::size_t stage, std::uint32_t k, double left) {
    const Series& forward = series(stage, Half::Forward);
    const std::size_t rank = forward.rank;
    const Passed& passed = passed_[pipeline_[stage]][rank];
    double& tail = tail_[task(stage, Half::Forward, k)];
    if (counts(rank)) {
      tail = (left - 1) * forward.takes + left * (passed.backward + passed.weight);
      for (const std::size_t each : passed.stages) {
        if (each > stage) tail += left * series(each, Half::Forward).takes;
      }
    }
    raise_tail(tail, forward, k);
    tail =
        std::max(tail, series(stage, Half::Backward).takes + tail_[task(stage, Half::Backward, k)]);
    for (const std::size_t each : passed.stages) {
      if (each <= stage) continue;
      tail =
          std::max(tail, series(each, Half::Forward).takes + tail_[task(each, Half::Forward, k)]);
    }
    if (k + 1 < m_) {
      tail = std::max(tail, forward.takes + tail_[task(stage, Half::Forward, k + 1)]);
    }
  }

  const Problem& problem_;
  std::uint32_t m_;
  std::optional<std::size_t> own_;
  std::vector<std::vector<Passed>> passed_;  // by pipeline and rank
  std::vector<std::size_t> pipeline_;        // by stage
  std::vector<double> head_;                 // by task
  std::vector<double> tail_;
};

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
    const Series& weight = problem.series[series_of(stage, Half::Weight)];
    const double taken = problem.series[id].holds;
    const double kept = -weight.holds;
    if (taken < 0 || kept < 0) return 0;
    sum += taken * residence[stage] + kept * weight.takes;
  }
  return sum * problem.microbatches();
}

}  // namespace

LowerBounds lower_bounds(const Problem& problem) {
  LowerBounds bounds;
  const Windows all(problem, std::nullopt);
  const std::vector<double> residence = residences(problem);
  for (std::size_t rank = 0; rank < problem.of_rank.size(); ++rank) {
    raise(bounds.makespan, all.machine(rank), "machine", rank);
    raise(bounds.span, Windows(problem, rank).machine(rank), "machine", rank);
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
  return bounds;
}

std::string words_for(const Bound& bound) {
  const std::string& by = bound.by;
  if (by == "path") return "one microbatch's way to the last stage and back";
  if (by.empty()) return "nothing";
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

}  // namespace capo::optimise
