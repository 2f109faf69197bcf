// Measures the evaluator of `capo optimise`: re-evaluation after one shift against evaluation from
// nothing, and how soon there is a first order.
//
//   build/ci/bench/bench_optimise [shifts of each step of 10^4 tasks, default 20000]
//
// Shifts are of tasks by chance, to a place up to four away, from orders that rules of construction
// make; each is taken back, so that all are of the same orders. A line is a step of about 10^4
// tasks, the last one of 49,152: 32 ranks, two chunks, 256 microbatches. `made` re-evaluates every
// shift, which looks at all that comes behind where the makespan becomes longer. `evaluated` is
// what a search does: the makespan is foreseen from ends and tails, and a shift is made only if
// that does not tell. `kept` makes those shifts alone that leave the makespan as it is or shorter,
// from orders that a walk has made better: what a walk keeps where it is cold.

#include "optimise/bounds.h"
#include "optimise/construct.h"
#include "optimise/evaluation.h"
#include "optimise/tails.h"
#include "optimise/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace {

using capo::optimise::Orders;
using capo::optimise::Problem;

// Counts this process alone, since machines do other work as well.
double processor_time() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_since(double began) {
  return processor_time() - began;
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
  const auto began = processor_time();
  double sum = 0;
  for (int i = 0; i < kTimes; ++i) sum += capo::optimise::evaluate(problem, orders)->makespan;
  return sum > 0 ? seconds_since(began) / kTimes : 0;
}

/// A shift that is possible.
struct Shift {
  std::size_t rank = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

std::vector<Shift> shifts_by_chance(const Problem& problem, capo::optimise::Evaluation& evaluation,
                                    std::size_t count) {
  capo::optimise::Chance chance(1);
  std::vector<Shift> shifts;
  while (shifts.size() < count) {
    Shift shift{.rank = chance.below(problem.of_rank.size()),
                .from = chance.below(problem.tasks_of_rank())};
    const std::uint32_t distance = 1 + chance.below(4);
    shift.to = chance.below(2) == 0 ? shift.from - std::min(shift.from, distance)
                                    : std::min(shift.from + distance, problem.tasks_of_rank() - 1);
    if (!evaluation.shift(shift.rank, shift.from, shift.to)) continue;
    evaluation.undo();
    shifts.push_back(shift);
  }
  return shifts;
}

void print_shifts(const Problem& problem, const Orders& orders, double from_nothing,
                  std::size_t shifts_of_step) {
  capo::optimise::Evaluation evaluation(problem, orders);
  const std::vector<Shift> shifts = shifts_by_chance(problem, evaluation, shifts_of_step);
  const auto count = static_cast<double>(shifts.size());
  std::vector<double> made;
  std::size_t visited = 0;
  const auto making = processor_time();
  for (const Shift& shift : shifts) {
    if (!evaluation.shift(shift.rank, shift.from, shift.to)) continue;
    made.push_back(evaluation.makespan());
    visited += evaluation.visited();
    evaluation.undo();
  }
  const double of_making = seconds_since(making) / count;

  capo::optimise::Tails tails(problem, evaluation, capo::optimise::Objective::Makespan);
  const double makespan = evaluation.makespan();
  std::vector<double> evaluated;
  std::size_t foreseen = 0;
  const auto evaluating = processor_time();
  for (const Shift& shift : shifts) {
    const auto seen = tails.foresee(shift.rank, shift.from, shift.to, makespan);
    evaluated.push_back(seen.value);
    if (seen.exact) {
      ++foreseen;
    } else if (evaluation.shift(shift.rank, shift.from, shift.to)) {
      evaluated.back() = evaluation.makespan();
      evaluation.undo();
    }
  }
  const double of_evaluating = seconds_since(evaluating) / count;
  fmt::print("  made: {:.2f} us with taking back, {:.0f} tasks visited, {:.1f} times as fast\n",
             of_making * 1e6, static_cast<double>(visited) / count, from_nothing / of_making);
  fmt::print("  evaluated: {:.3f} us, {:.1f} % foreseen, {:.1f} times as fast, {}\n",
             of_evaluating * 1e6, 100 * static_cast<double>(foreseen) / count,
             from_nothing / of_evaluating, made == evaluated ? "all equal" : "NOT EQUAL");
}

void print_kept(const Problem& problem, const Orders& orders, double from_nothing,
                std::size_t shifts_of_step) {
  constexpr std::uint64_t kShiftsOfWalk = 500'000;
  capo::optimise::Walk walk(problem, orders, capo::optimise::Objective::Makespan, 1);
  walk.run(kShiftsOfWalk, [] { return false; });
  capo::optimise::Evaluation evaluation(problem, walk.best_orders());
  const double makespan = evaluation.makespan();
  std::vector<Shift> kept;
  for (const Shift& shift : shifts_by_chance(problem, evaluation, shifts_of_step)) {
    if (!evaluation.shift(shift.rank, shift.from, shift.to)) continue;
    if (evaluation.makespan() <= makespan) kept.push_back(shift);
    evaluation.undo();
  }
  std::size_t visited = 0;
  const auto making = processor_time();
  for (const Shift& shift : kept) {
    if (!evaluation.shift(shift.rank, shift.from, shift.to)) continue;
    visited += evaluation.visited();
    evaluation.undo();
  }
  const auto count = static_cast<double>(kept.size());
  const double of_making = seconds_since(making) / count;
  fmt::print(
      "  kept: {:.1f} % of the shifts of walked orders, {:.2f} us with taking back, {:.0f} tasks "
      "visited, {:.1f} times as fast\n",
      100 * count / static_cast<double>(shifts_of_step), of_making * 1e6,
      static_cast<double>(visited) / count, from_nothing / of_making);
}

void measure(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches,
             std::size_t shifts) {
  const auto began = processor_time();
  const Problem problem = problem_of(ranks, chunks, microbatches);
  const Orders orders = *capo::optimise::construct(problem, {});
  const double first = seconds_since(began);
  const auto bounding = processor_time();
  const double bound = capo::optimise::lower_bounds(problem).makespan.value;
  const double bounds = seconds_since(bounding);
  const double from_nothing = time_from_nothing(problem, orders);
  fmt::print(
      "{} ranks, {} chunks, {} microbatches: {} tasks, first order in {:.1f} ms, bounds in {:.1f} "
      "ms, "
      "{:.1f} % above them; from nothing {:.1f} us\n",
      ranks, chunks, microbatches, problem.tasks(), first * 1e3, bounds * 1e3,
      (capo::optimise::evaluate(problem, orders)->makespan / bound - 1) * 100, from_nothing * 1e6);
  print_shifts(problem, orders, from_nothing, shifts);
  print_kept(problem, orders, from_nothing, shifts);
}

}  // namespace

int main(int count, char** words) {
  constexpr std::size_t kShifts = 20'000;
  const std::size_t shifts = count > 1 ? std::stoull(words[1]) : kShifts;
  measure(4, 1, 840, shifts);
  measure(16, 1, 210, shifts);
  measure(16, 2, 105, shifts);
  measure(32, 2, 256, kShifts);
  return 0;
}
