// Published schedules of a problem's counts under its costs and memory: what `capo optimise`
// compares its order with, and those of the same placement as starts of the search.
//
// Most are timed by the search's own evaluation, which is many times as fast as the simulator and
// comes to the same times and peaks. It knows neither composites nor whole backwards beside halves;
// what has these is simulated.
//
// With very many microbatches those that are no starts, and are not searched themselves, are timed
// on fewer: if twice and four times as many further rounds of microbatches take two and four times
// as long, and no more memory or in the same measure, so do all others. Tested by
// tests/cli/optimise_published_test.cpp.

#include "cli/commands/optimised.h"
#include "cli/options/named_schedule.h"
#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "core/order/declare.h"
#include "schedules/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

namespace capo::cli {

namespace {

/// Steps of fewer rounds than this are timed in full, since eight are looked at to tell of more.
constexpr std::int64_t kManyRounds = 20;

struct Name {
  std::string name;
  std::optional<std::int32_t> chunks;
  bool repeats = false;  ///< a function of the counts alone, and no start
};

// Groups below the number of ranks: powers of two, and the half, from which on they hold less.
std::set<std::int32_t> groups_of(std::int32_t ranks) {
  std::set<std::int32_t> groups;
  for (std::int64_t group = 1; group < ranks; group *= 2) {
    groups.insert(static_cast<std::int32_t>(group));
  }
  if (ranks > 1) groups.insert((ranks + 1) / 2);
  return groups;
}

std::vector<Name> names_for(const optimise::Frame& frame) {
  std::vector<Name> names;
  for (const schedules::Entry& entry : schedules::entries()) {
    const bool any = entry.chunks == "any" || entry.chunks == "even";
    const auto chunks = any && frame.chunks > 1 ? std::optional(frame.chunks) : std::nullopt;
    const bool start =
        entry.topology == frame.topology && (any || entry.chunks == fmt::to_string(frame.chunks));
    const bool repeats = !start && (entry.uses.empty() || entry.uses == "group");
    names.push_back({.name = std::string(entry.name), .chunks = chunks, .repeats = repeats});
    if (entry.name != "gis") continue;
    for (const std::int32_t group : groups_of(frame.ranks)) {
      names.push_back(
          {.name = fmt::format("gis-g{}", group), .chunks = chunks, .repeats = repeats});
    }
  }
  return names;
}

// Generators know times of ranks and of all links alone; what they do not know they leave out.
std::vector<CostSetting> generator_costs(const Costs& costs) {
  std::vector<CostSetting> known;
  for (const CostSetting& setting : costs.settings) {
    const CostScope& scope = setting.scope;
    if (scope.chunk < 0 && scope.layer < 0 && scope.peer < 0) known.push_back(setting);
  }
  return known;
}

// Whether the k-th of a kind and chunk is microbatch k, or the k-th of a pipeline's, and nothing
// runs together.
bool is_in_turn(const RankOrder& rank) {
  constexpr std::size_t kKinds = as_index(Kind::BackwardWeight) + 1;
  std::vector<std::array<MicrobatchId, kKinds>> last(as_index(rank.chunks) + 1);
  for (auto& of_chunk : last) of_chunk.fill(kNoMicrobatch);
  return std::all_of(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
    if (!is_compute(entry.kind) || entry.group != Group::Alone) return false;
    MicrobatchId& before = last[entry.chunk.index() + 1].at(as_index(entry.kind));
    const bool behind = before == kNoMicrobatch || before < entry.microbatch;
    before = entry.microbatch;
    return behind;
  });
}

// Whether every backward of a schedule is whole, or none is; nullopt if some are.
std::optional<bool> has_whole_backwards(const Schedule& schedule) {
  const std::vector<Delay> first = resolved_delay(schedule.ranks.front());
  for (const RankOrder& rank : schedule.ranks) {
    for (const Delay delay : resolved_delay(rank)) {
      if (delay == Delay::Mixed || delay != first.front()) return std::nullopt;
    }
  }
  return first.front() == Delay::Never;
}

// A whole backward hands its gradient on when its weight gradient is done, too.
void make_backwards_whole(optimise::Problem& problem) {
  for (std::size_t stage = 0; stage < problem.stages(); ++stage) {
    optimise::Series& backward =
        problem.series[optimise::series_of(stage, optimise::Half::Backward)];
    optimise::Series& weight = problem.series[optimise::series_of(stage, optimise::Half::Weight)];
    backward.takes += std::exchange(weight.takes, 0);
    backward.holds += std::exchange(weight.holds, 0);
  }
}

// nullopt if it is for the simulator to tell. With a model file a whole backward may take another
// time than its halves.
std::optional<optimise::Figures> evaluated(const Schedule& schedule,
                                           const SimulationOptions& options) {
  const std::optional<bool> whole = has_whole_backwards(schedule);
  if (!whole || (*whole && !options.costs.modules.layers.empty())) return std::nullopt;
  if (!std::all_of(schedule.ranks.begin(), schedule.ranks.end(), is_in_turn)) return std::nullopt;
  const bool two_pipelines = schedule.topology == Topology::Bidirectional;
  auto problem =
      optimise::problem_of({.ranks = static_cast<std::int32_t>(schedule.ranks.size()),
                            .chunks = schedule.ranks.front().chunks,
                            .microbatches = *schedule.microbatches / (two_pipelines ? 2 : 1),
                            .topology = schedule.topology},
                           options);
  if (!problem) return std::nullopt;
  const auto orders = optimise::orders_of(*problem, schedule);
  if (!orders) return std::nullopt;
  if (*whole) make_backwards_whole(*problem);
  return optimise::evaluate(*problem, *orders);
}

std::optional<optimise::Figures> simulated(const Input& input, const SimulationOptions& options) {
  const auto simulation = simulation_of(input, options);
  if (!simulation) return std::nullopt;
  const Simulation& of = **simulation;
  return optimise::Figures{.makespan = of.makespan(), .span = of.span(), .peaks = {of.peak()}};
}

std::int32_t microbatches_of(const optimise::Frame& frame) {
  return frame.microbatches * (frame.topology == Topology::Bidirectional ? 2 : 1);
}

// nullopt if there is no such schedule of these counts, or none for these costs.
std::optional<PublishedSchedule> made(const Name& name, const optimise::Problem& problem,
                                      std::int32_t microbatches, const SimulationOptions& options,
                                      const Limits& limits, unsigned threads) {
  schedules::Request asked{.name = name.name,
                           .ranks = problem.frame.ranks,
                           .microbatches = microbatches,
                           .chunks = name.chunks,
                           .threads = threads};
  if (options.memory_limit && schedules::takes_memory_limit(name.name)) {
    asked.memory_limit = options.memory_limit;
    asked.memory = generator_memory(options.memory.value_or(MemoryChange{}));
  }
  auto schedule = make_named(asked, generator_costs(options.costs), options.costs.per, limits);
  if (!schedule || schedule->microbatches.value_or(0) > microbatches) return {};
  Input input{.form = Form::OrderFile, .schedule = *std::move(schedule)};
  // A setting, or a model file, may speak of a chunk that another schedule does not have.
  if (declare_layers(input.schedule, options.costs.modules.layers)) return {};
  if (misfit_of(options.costs.settings, input.schedule)) return {};
  auto figures = evaluated(input.schedule, options);
  if (!figures) figures = simulated(input, options);
  if (!figures) return {};
  PublishedSchedule schedule_of{.name = name.name,
                                .makespan = figures->makespan,
                                .span = figures->span,
                                .peak = figures->highest_peak(),
                                .fits = fits(problem, *figures)};
  if (microbatches != microbatches_of(problem.frame)) return schedule_of;
  auto orders = optimise::orders_of(problem, input.schedule);
  if (orders) schedule_of.orders = *std::move(orders);
  return schedule_of;
}

// Microbatches after which every order of these counts does the same again: of each group that
// there is, and two for each rank.
std::int64_t round_of(const optimise::Frame& frame) {
  std::int64_t round = 2 * std::int64_t{frame.ranks};
  for (const std::int32_t group : groups_of(frame.ranks)) round = std::lcm(round, group);
  return round;
}

// Goes on from what 2, 4 and 8 rounds come to; nullopt if they do not tell.
std::optional<double> after_rounds(std::int64_t rounds, double two, double four, double eight) {
  if (std::abs((eight - four) - 2 * (four - two)) > 1e-10 * eight) return std::nullopt;
  return eight + static_cast<double>(rounds - 8) * (eight - four) / 4;
}

std::optional<PublishedSchedule> published(const Name& name, const optimise::Problem& problem,
                                           const SimulationOptions& options, const Limits& limits,
                                           unsigned threads) {
  const std::int32_t all = microbatches_of(problem.frame);
  const std::int64_t rounds = all / round_of(problem.frame);
  const auto of = [&](std::int64_t left_out) {
    const auto few = static_cast<std::int32_t>(all - left_out * round_of(problem.frame));
    return made(name, problem, few, options, limits, threads);
  };
  if (!name.repeats || rounds < kManyRounds) return of(0);
  const auto two = of(rounds - 2);
  const auto four = of(rounds - 4);
  auto eight = of(rounds - 8);
  if (!two || !four || !eight) return of(0);
  const auto makespan = after_rounds(rounds, two->makespan, four->makespan, eight->makespan);
  const auto span = after_rounds(rounds, two->span, four->span, eight->span);
  const auto peak = after_rounds(rounds, two->peak, four->peak, eight->peak);
  if (!makespan || !span || !peak) return of(0);
  eight->makespan = *makespan;
  eight->span = *span;
  eight->peak = *peak;
  eight->fits = problem.fits(*peak);
  return eight;
}

}  // namespace

std::vector<PublishedSchedule> published_schedules(const optimise::Problem& problem,
                                                   const SimulationOptions& options,
                                                   const Limits& limits, unsigned threads) {
  const std::vector<Name> names = names_for(problem.frame);
  std::vector<std::optional<PublishedSchedule>> found(names.size());
  const auto make = [&](std::size_t i, unsigned with) {
    found[i] = published(names[i], problem, options, limits, with);
  };
  // This one takes longer than all others together.
  const auto searched = [&](std::size_t i) { return names[i].name == "v-adaptive"; };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (searched(i)) make(i, threads);
  }
  in_parallel(names.size(), threads, [&](std::size_t i) {
    if (!searched(i)) make(i, 1);
  });
  std::vector<PublishedSchedule> all;
  for (auto& each : found) {
    if (each) all.push_back(*std::move(each));
  }
  return all;
}

}  // namespace capo::cli
