// Measures the evaluator of `capo optimise`: re-evaluation after one shift against evaluation from
// nothing, and how soon there is a first order.
//
//   build/ci/bench/bench_optimise
//
// Shifts are of tasks by chance, to a place up to four away, from orders that rules of construction
// make; each is taken back, so that all are of the same orders. A line is a step of about 10^4
// tasks, the last one of 49,152: 32 ranks, two chunks, 256 microbatches. `in reach` counts only
// those shifts after which the makespan is no longer, which are the ones that a search keeps.

#include "optimise/bounds.h"
#include "optimise/construct.h"
#include "optimise/evaluation.h"
#include "optimise/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace {

using capo::optimise::Orders;
using capo::optimise::Problem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

Problem problem_of(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches) {
  using Key = capo::CostSetting::Key;
  capo::SimulationOptions options{
      .memory = capo::MemoryChange{.forward = 1, .backward = -0.5, .weight = -0.5},
      .memory_limit = static_cast<double>(ranks)};
  options.costs.per = capo::CostPer::Rank;
  options.costs.set({.key = Key::Forward, .value = 12});
  options.costs.set({.key = Key::Backward, .value = 13});
  options.costs.set({.key = Key::Weight, .value = 9});
  options.costs.set({.key = Key::Latency, .value = 1});
  return *capo::optimise::problem_of(
      {.ranks = ranks,
       .chunks = chunks,
       .microbatches = microbatches,
       .topology = chunks == 2 ? capo::Topology::V : capo::Topology::Loop},
      options);
}

double time_from_nothing(const Problem& problem, const Orders& orders) {
  constexpr int kTimes = 50;
  const auto began = Clock::now();
  double sum = 0;
  for (int i = 0; i < kTimes; ++i) sum += capo::optimise::evaluate(problem, orders)->makespan;
  return sum > 0 ? seconds_since(began) / kTimes : 0;
}

struct Shifts {
  std::size_t done = 0;
  std::size_t visited = 0;
  double seconds = 0;

  [[nodiscard]] double mean() const { return seconds / static_cast<double>(done); }
};

void print_shifts(const Problem& problem, const Orders& orders, double from_nothing) {
  capo::optimise::Evaluation evaluation(problem, orders);
  capo::optimise::Chance chance(1);
  const double makespan = evaluation.makespan();
  Shifts all;
  Shifts in_reach;
  while (all.done < 20'000) {
    const std::size_t rank = chance.below(problem.of_rank.size());
    const std::uint32_t from = chance.below(problem.tasks_of_rank());
    const std::uint32_t distance = 1 + chance.below(4);
    const std::uint32_t to = chance.below(2) == 0
                                 ? from - std::min(from, distance)
                                 : std::min(from + distance, problem.tasks_of_rank() - 1);
    const auto began = Clock::now();
    if (!evaluation.shift(rank, from, to)) continue;
    const bool is_in_reach = evaluation.makespan() <= makespan;
    const std::size_t visited = evaluation.visited();
    evaluation.undo();
    const double took = seconds_since(began);
    for (Shifts* shifts : {&all, is_in_reach ? &in_reach : nullptr}) {
      if (shifts == nullptr) continue;
      ++shifts->done;
      shifts->visited += visited;
      shifts->seconds += took;
    }
  }
  const auto print = [&](const char* which, const Shifts& shifts) {
    if (shifts.done == 0) return;
    fmt::print(
        "  {}: {} shifts, {:.2f} us with taking back, {:.0f} tasks visited, {:.1f} times as fast\n",
        which, shifts.done, shifts.mean() * 1e6,
        static_cast<double>(shifts.visited) / static_cast<double>(shifts.done),
        from_nothing / shifts.mean());
  };
  print("all", all);
  print("in reach", in_reach);
}

void measure(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches) {
  const auto began = Clock::now();
  const Problem problem = problem_of(ranks, chunks, microbatches);
  const Orders orders = *capo::optimise::construct(problem, {});
  const double first = seconds_since(began);
  const auto bounding = Clock::now();
  const double bound = capo::optimise::lower_bounds(problem).makespan.value;
  const double bounds = seconds_since(bounding);
  const double from_nothing = time_from_nothing(problem, orders);
  fmt::print(
      "{} ranks, {} chunks, {} microbatches: {} tasks, first order in {:.1f} ms, bounds in {:.1f} "
      "ms, "
      "{:.1f} % above them; from nothing {:.1f} us\n",
      ranks, chunks, microbatches, problem.tasks(), first * 1e3, bounds * 1e3,
      (capo::optimise::evaluate(problem, orders)->makespan / bound - 1) * 100, from_nothing * 1e6);
  print_shifts(problem, orders, from_nothing);
}

}  // namespace

int main() {
  measure(4, 1, 840);
  measure(16, 1, 210);
  measure(16, 2, 105);
  measure(32, 2, 256);
  return 0;
}
