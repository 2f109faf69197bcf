// Published schedules of a problem's counts under its costs and memory: what `capo optimise`
// compares its order with, and those of the same placement as starts of the search.

#include "cli/commands/optimised.h"
#include "cli/options/named_schedule.h"
#include "core/base/in_parallel.h"
#include "core/order/declare.h"
#include "schedules/catalogue.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <utility>

namespace capo::cli {

namespace {

struct Name {
  std::string name;
  std::optional<std::int32_t> chunks;
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
    names.push_back({.name = std::string(entry.name), .chunks = chunks});
    if (entry.name != "gis") continue;
    for (const std::int32_t group : groups_of(frame.ranks)) {
      names.push_back({.name = fmt::format("gis-g{}", group), .chunks = chunks});
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

// nullopt if there is no such schedule of these counts, or none for these costs.
std::optional<PublishedSchedule> published(const Name& name, const optimise::Problem& problem,
                                           const SimulationOptions& options, const Limits& limits) {
  const bool two_pipelines = problem.frame.topology == Topology::Bidirectional;
  const std::int32_t microbatches = problem.frame.microbatches * (two_pipelines ? 2 : 1);
  schedules::Request asked{.name = name.name,
                           .ranks = problem.frame.ranks,
                           .microbatches = microbatches,
                           .chunks = name.chunks};
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
  const auto simulation = simulation_of(input, options);
  if (!simulation) return {};
  const Simulation& of = **simulation;
  PublishedSchedule schedule_of{.name = name.name,
                                .makespan = of.makespan(),
                                .span = of.span(),
                                .peak = of.peak(),
                                .fits = problem.fits(of.peak())};
  auto orders = optimise::orders_of(problem, input.schedule);
  if (orders) schedule_of.orders = *std::move(orders);
  return schedule_of;
}

}  // namespace

std::vector<PublishedSchedule> published_schedules(const optimise::Problem& problem,
                                                   const SimulationOptions& options,
                                                   const Limits& limits, unsigned threads) {
  const std::vector<Name> names = names_for(problem.frame);
  std::vector<std::optional<PublishedSchedule>> made(names.size());
  in_parallel(names.size(), threads,
              [&](std::size_t i) { made[i] = published(names[i], problem, options, limits); });
  std::vector<PublishedSchedule> all;
  for (auto& each : made) {
    if (each) all.push_back(*std::move(each));
  }
  return all;
}

}  // namespace capo::cli
