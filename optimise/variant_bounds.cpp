// The bounds of all variants at once, and of each one where they are few.

#include "optimise/choices.h"
#include "optimise/variants.h"

#include "core/base/in_parallel.h"

#include <algorithm>

namespace capo::optimise {

namespace {

// The least of the bounds of all choices, each looked at by itself.
LowerBounds least_bounds(const Choices& choices, const std::vector<Choice>& all,
                         std::int32_t microbatches, std::uint64_t states, unsigned threads,
                         const std::function<bool()>& stopped) {
  std::vector<LowerBounds> bounds(all.size());
  in_parallel(all.size(), threads, [&](std::size_t i) {
    bounds[i] =
        lower_bounds(choices.problem_with(all[i], microbatches), states / all.size(), stopped);
  });
  LowerBounds least = bounds.front();
  for (const LowerBounds& each : bounds) {
    least.makespan.value = std::min(least.makespan.value, each.makespan.value);
    least.span.value = std::min(least.span.value, each.span.value);
  }
  least.makespan.by = least.span.by = "each variant";
  return least;
}

// The problem with the times of none that recompute, and the memory of all that do: whichever do,
// its orders take no less time, and hold no less.
Problem least_of_choices(const Variants& of) {
  Problem least = *problem_of(of.frame, with_none_recomputed(of.options));
  const Problem all = relaxed(*problem_of(of.frame, with_all_recomputed(of.options)));
  for (SeriesId id = 0; id < least.series.size(); ++id) {
    least.series[id].holds = all.series[id].holds;
  }
  least.closed_forms = {};
  return least;
}

}  // namespace

SimulationOptions with_all_recomputed(SimulationOptions options) {
  options.costs.recomputed = {.scopes = {CostScope{}}};
  return options;
}

SimulationOptions with_none_recomputed(SimulationOptions options) {
  options.costs.recomputed = {};
  return options;
}

LowerBounds bounds_of_variants(const Variants& of, std::uint64_t states, unsigned threads,
                               const std::function<bool()>& stopped) {
  const Problem least = of.recomputes ? least_of_choices(of) : *problem_of(of.frame, of.options);
  LowerBounds bounds = of.places ? bounds_of_any_placement(least_costs_of(least, of.options.costs))
                                 : lower_bounds(least, states, stopped);
  const Choices choices(of);
  const auto all = choices.all();
  if (states == 0 || !all || stopped()) return bounds;
  const LowerBounds each =
      least_bounds(choices, *all, of.frame.microbatches, states, threads, stopped);
  if (each.makespan.value > bounds.makespan.value) bounds.makespan = each.makespan;
  if (each.span.value > bounds.span.value) bounds.span = each.span;
  return bounds;
}

}  // namespace capo::optimise
