// Published schedules of a problem's counts under its costs and memory: what `capo optimise`
// compares its order with, and those of the same placement as starts of the search.
//
// Most are timed by the search's own evaluation, which is many times as fast as the simulator and
// comes to the same times and peaks. It knows neither composites nor whole backwards beside halves;
// what has these is simulated.
//
// With very many microbatches those that are functions of the counts are timed on three, four and
// six rounds of microbatches, where these show what all further rounds come to (optimise/rounds.h).
// The best of them that may be a start is then made in full. Tested by
// tests/cli/optimise_published_test.cpp.

#include "cli/commands/optimised.h"
#include "cli/options/named_schedule.h"
#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "core/order/declare.h"
#include "core/order/fuse_weights.h"
#include "optimise/rounds.h"
#include "schedules/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

namespace capo::cli {

namespace {

/// Steps of fewer rounds than this are timed in full, since thirteen are made to tell of more.
constexpr std::int64_t kManyRounds = 20;

struct Name {
  std::string name;
  std::optional<std::int32_t> chunks;
  bool start = false;    ///< of the problem's placement
  bool repeats = false;  ///< a function of the counts alone
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
    const bool repeats = entry.uses.empty() || entry.uses == "group";
    const auto add = [&](std::string name) {
      names.push_back(
          {.name = std::move(name), .chunks = chunks, .start = start, .repeats = repeats});
    };
    add(std::string(entry.name));
    if (entry.name != "gis") continue;
    for (const std::int32_t group : groups_of(frame.ranks)) add(fmt::format("gis-g{}", group));
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
    weight.further = 0;
  }
}

/// The figures of a schedule, and when its tasks end if that was asked for.
struct Timed {
  optimise::Figures figures;
  optimise::TimedOrders turns;
  bool in_halves = false;  ///< every backward was taken as its halves, as a problem has it
};
enum class Turns { Left, Kept };

// nullopt if it is for the simulator to tell. With a model file a whole backward may take another
// time than its halves.
std::optional<Timed> evaluated(const Schedule& schedule, const SimulationOptions& options,
                               std::int32_t weights_in_call, Turns turns) {
  const std::optional<bool> whole = has_whole_backwards(schedule);
  if (!whole || (*whole && !options.costs.modules.layers.empty())) return std::nullopt;
  if (!std::all_of(schedule.ranks.begin(), schedule.ranks.end(), is_in_turn)) return std::nullopt;
  const bool two_pipelines = schedule.topology == Topology::Bidirectional;
  auto problem =
      optimise::problem_of({.ranks = static_cast<std::int32_t>(schedule.ranks.size()),
                            .chunks = schedule.ranks.front().chunks,
                            .microbatches = *schedule.microbatches / (two_pipelines ? 2 : 1),
                            .topology = schedule.topology,
                            .weights_in_call = weights_in_call},
                           options);
  if (!problem) return std::nullopt;
  const auto orders = optimise::orders_of(*problem, schedule);
  if (!orders) return std::nullopt;
  if (*whole) make_backwards_whole(*problem);
  auto figures = optimise::evaluate(*problem, *orders);
  if (!figures) return std::nullopt;
  Timed timed{.figures = *std::move(figures), .turns = {}, .in_halves = !*whole};
  if (turns == Turns::Kept) timed.turns = timed_orders(*problem, *orders);
  return timed;
}

std::optional<Timed> simulated(const Input& input, const SimulationOptions& options, Turns turns) {
  const auto simulation = simulation_of(input, options);
  if (!simulation) return std::nullopt;
  const Simulation& of = **simulation;
  Timed timed{.figures = {.makespan = of.makespan(), .span = of.span(), .peaks = {of.peak()}},
              .turns = {}};
  if (turns == Turns::Kept) timed.turns = optimise::timed_orders(of);
  return timed;
}

std::int32_t microbatches_of(const optimise::Frame& frame) {
  return frame.microbatches * (frame.topology == Topology::Bidirectional ? 2 : 1);
}

/// A published schedule, and when its tasks end if it has other counts than the problem.
struct TimedSchedule {
  PublishedSchedule schedule;
  optimise::TimedOrders turns;
};

// nullopt if there is no such schedule of these counts, or none for these costs.
std::optional<TimedSchedule> made(const Name& name, const optimise::Problem& problem,
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
  if (misfit_of(options.costs.recomputed, input.schedule, {})) return {};
  const bool in_full = microbatches == microbatches_of(problem.frame);
  const Turns turns = in_full ? Turns::Left : Turns::Kept;
  const std::int32_t weights_in_call = problem.frame.weights_in_call;
  auto timed = evaluated(input.schedule, options, weights_in_call, turns);
  std::optional<optimise::Orders> orders;
  if (in_full) {
    if (auto same = optimise::orders_of(problem, input.schedule)) orders = *std::move(same);
  }
  if (!timed) {
    fuse_weights(input.schedule, weights_in_call);
    timed = simulated(input, options, turns);
  }
  if (!timed) return {};
  const optimise::Figures& figures = timed->figures;
  TimedSchedule made{.schedule = {.name = name.name,
                                  .makespan = figures.makespan,
                                  .span = figures.span,
                                  .peak = figures.highest_peak(),
                                  .fits = fits(problem, figures)},
                     .turns = std::move(timed->turns)};
  if (orders && timed->in_halves) made.schedule.figures = figures;
  made.schedule.orders = std::move(orders);
  return made;
}

// Microbatches after which every order of these counts does the same again: of each group that
// there is, and two for each rank.
std::int64_t round_of(const optimise::Frame& frame) {
  std::int64_t round = 2 * std::int64_t{frame.ranks};
  for (const std::int32_t group : groups_of(frame.ranks)) round = std::lcm(round, group);
  return round;
}

std::optional<PublishedSchedule> in_full(const Name& name, const optimise::Problem& problem,
                                         const SimulationOptions& options, const Limits& limits,
                                         unsigned threads) {
  auto all = made(name, problem, microbatches_of(problem.frame), options, limits, threads);
  if (!all) return std::nullopt;
  return std::move(all->schedule);
}

// From rounds that are few, and without orders, if these tell; nullopt if they do not.
std::optional<PublishedSchedule> from_rounds(const Name& name, const optimise::Problem& problem,
                                             const SimulationOptions& options,
                                             const Limits& limits) {
  const std::int32_t all = microbatches_of(problem.frame);
  const std::int64_t rounds = all / round_of(problem.frame);
  if (!name.repeats || rounds < kManyRounds) return std::nullopt;
  if (problem.fuses()) return std::nullopt;  // a run of weight gradients need not be full calls
  const auto of = [&](std::int64_t few) {
    const auto left_out = static_cast<std::int32_t>((rounds - few) * round_of(problem.frame));
    return made(name, problem, all - left_out, options, limits, 1);
  };
  constexpr std::int64_t kMost = 6;
  const auto three = of(3);
  const auto four = of(4);
  if (!three || !four) return std::nullopt;
  if (!optimise::later_by_round(three->turns, four->turns, four->turns)) return std::nullopt;
  auto most = of(kMost);
  if (!most) return std::nullopt;
  const auto later = optimise::later_by_round(three->turns, four->turns, most->turns);
  if (!later) return std::nullopt;
  PublishedSchedule& schedule = most->schedule;
  schedule.makespan += static_cast<double>(rounds - kMost) * *later;
  schedule.span += static_cast<double>(rounds - kMost) * *later;
  return std::move(schedule);
}

std::optional<PublishedSchedule> published(const Name& name, const optimise::Problem& problem,
                                           const SimulationOptions& options, const Limits& limits,
                                           unsigned threads) {
  auto told = from_rounds(name, problem, options, limits);
  return told ? std::move(told) : in_full(name, problem, options, limits, threads);
}

// Which of those that may be starts and fit has least of what is told; nullopt if none does.
template <typename Told>
std::optional<std::size_t> best_start(const std::vector<Name>& names,
                                      const std::vector<std::optional<PublishedSchedule>>& found,
                                      const Told& told) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].start || !found[i] || !found[i]->fits) continue;
    if (!best || told(*found[i]) < told(*found[*best])) best = i;
  }
  return best;
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
  for (const auto told : {&PublishedSchedule::makespan, &PublishedSchedule::span}) {
    const auto best = best_start(names, found, std::mem_fn(told));
    if (!best || found[*best]->orders) continue;
    if (auto all = in_full(names[*best], problem, options, limits, threads)) found[*best] = all;
  }
  std::vector<PublishedSchedule> all;
  for (auto& each : found) {
    if (each) all.push_back(*std::move(each));
  }
  return all;
}

void add_starts(const std::vector<PublishedSchedule>& published, Recipient recipient,
                std::vector<optimise::Start>& starts) {
  // Weight gradients directly behind their backwards make it another problem.
  const bool same = recipient != Recipient::Te;
  for (const PublishedSchedule& each : published) {
    if (!each.orders) continue;
    optimise::Start start{.name = each.name, .orders = *each.orders};
    if (same) start.figures = each.figures;
    starts.push_back(std::move(start));
  }
}

}  // namespace capo::cli
