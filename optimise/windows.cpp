#include "optimise/windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace capo::optimise {

namespace {

constexpr double kUnbegun = -std::numeric_limits<double>::infinity();

}  // namespace

Windows::Windows(const Problem& problem, std::optional<std::size_t> rank)
    : problem_(problem), m_(problem.microbatches()), own_(rank) {
  head_.assign(problem.tasks(), kUnbegun);
  tail_.assign(problem.tasks(), kUnbegun);
  find_pipelines();
  for (std::uint32_t k = 0; k < m_; ++k) heads_of(k);
  for (std::uint32_t k = m_; k-- > 0;) tails_of(k);
}

double Windows::begin(std::size_t rank) const {
  double first = std::numeric_limits<double>::infinity();
  for (const SeriesId series : problem_.of_rank[rank]) {
    first = std::min(first, head_[series * m_]);
  }
  return first;
}

// Stages of one pipeline follow each other: the first of each waits for no forward.
void Windows::find_pipelines() {
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
double Windows::after(std::size_t rank, double work) const {
  if (!counts(rank)) return kUnbegun;
  return (own_ ? 0 : first_of_rank(rank)) + work;
}

// Forwards of microbatch 0 have their heads before anything else asks for them.
double Windows::first_of_rank(std::size_t rank) const {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& pipeline : passed_) {
    if (pipeline[rank].stages.empty()) continue;
    const TaskNumber number = task(pipeline[rank].stages.front(), Half::Forward, 0);
    first = std::min(first, std::max(0.0, head_[number]));
  }
  return first;
}

void Windows::raise(double& head, const Series& of, std::uint32_t k) const {
  if (of.waits_for == kNoSeries) return;
  const SeriesId first = of.waits_for;
  head = std::max(head, head_[first * m_ + k] + problem_.series[first].takes + of.lag);
}

// Before the k-th forward of a stage begins, enough must have been given up, which takes time.
void Windows::raise_by_memory(double& head, std::size_t stage, std::size_t rank, std::uint32_t k,
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

void Windows::heads_of(std::uint32_t k) {
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

void Windows::backward_heads(std::size_t stage, std::uint32_t k) {
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
void Windows::raise_tail(double& tail, const Series& of, std::uint32_t k) const {
  if (of.awaited_by == kNoSeries) return;
  const Series& next = problem_.series[of.awaited_by];
  tail = std::max(tail, next.lag + next.takes + tail_[of.awaited_by * m_ + k]);
}

void Windows::tails_of(std::uint32_t k) {
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
      tail =
          std::max(tail, series(each, Half::Backward).takes + tail_[task(each, Half::Backward, k)]);
    }
    if (k + 1 < m_) {
      tail = std::max(tail, backward.takes + tail_[task(stage, Half::Backward, k + 1)]);
    }
  }
  for (std::size_t stage = problem_.stages(); stage-- > 0;) forward_tail(stage, k, left);
}

void Windows::forward_tail(std::size_t stage, std::uint32_t k, double left) {
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
    tail = std::max(tail, series(each, Half::Forward).takes + tail_[task(each, Half::Forward, k)]);
  }
  if (k + 1 < m_) {
    tail = std::max(tail, forward.takes + tail_[task(stage, Half::Forward, k + 1)]);
  }
}

}  // namespace capo::optimise
