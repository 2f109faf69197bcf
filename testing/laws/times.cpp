#include "testing/laws/times.h"

#include "core/rules/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace capo::testing::laws {

namespace {

// The most that rounding may change a time by.
double hair(double of) {
  return 1e-9 * std::max(1.0, std::abs(of));
}

Input input_of(const Schedule& schedule) {
  return {.form = Form::OrderFile, .schedule = schedule};
}

bool by_chunk_alone(const Costs& costs) {
  return costs.modules.list.empty() &&
         std::none_of(costs.settings.begin(), costs.settings.end(),
                      [](const CostSetting& setting) { return setting.scope.layer >= 0; });
}

// A microbatch passes all stages of one pipeline; elsewhere each chunk is a chain of its own.
bool is_one_pipeline(const Schedule& schedule) {
  return schedule.topology != Topology::Independent && schedule.topology != Topology::Bidirectional;
}

double takes(const Entry& entry, Delay delay, const TaskCosts& costs) {
  switch (entry.kind) {
    case Kind::Forward:
      return costs.forward;
    case Kind::Backward:
      return delay == Delay::Always ? costs.backward : costs.backward + costs.weight;
    case Kind::BackwardInput:
      return costs.backward;
    default:
      return 0;
  }
}

Breach at_least(double makespan, double bound, const char* what) {
  if (makespan + hair(makespan) >= bound) return std::nullopt;
  return fmt::format("the step takes {}, and {} {}", makespan, what, bound);
}

double computed_on_the_critical_path(const Simulation& simulation) {
  const TaskGraph& graph = simulation.graph();
  double computed = 0;
  for (const TaskId task : critical_path(simulation.subject(), simulation.times())) {
    if (!is_compute(graph.tasks[task].kind)) continue;
    computed += simulation.times().end_of(graph, task) - simulation.times().start_of(graph, task);
  }
  return computed;
}

}  // namespace

double longest_chain(const Schedule& schedule, const Costs& costs) {
  if (!by_chunk_alone(costs)) return 0;
  const bool one = is_one_pipeline(schedule);
  using Key = std::tuple<RankId, ChunkId, MicrobatchId>;
  std::map<Key, double> chains;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    const std::vector<Delay> delays = resolved_delay(rank);
    const auto number = static_cast<std::int32_t>(r);
    for (const Entry& entry : rank.replay ? *rank.replay : rank.order) {
      if (!is_compute(entry.kind) || entry.chunk > rank.chunks) continue;
      const Key key =
          one ? Key(0, 0, entry.microbatch) : Key(number, entry.chunk, entry.microbatch);
      chains[key] +=
          takes(entry, delays[entry.chunk.index()], costs.of_chunk(number, entry.chunk, 1));
    }
  }
  double longest = 0;
  for (const auto& [key, chain] : chains) longest = std::max(longest, chain);
  // A composite that overlaps takes this share of its members' times, and so of each member's.
  return longest * std::min(1.0, costs.overlap);
}

Breach finishes_where_accepted(const Schedule& schedule, const SimulationOptions& options) {
  const Input input = input_of(schedule);
  if (check(input, options.check).verdict != Verdict::Accepted) return std::nullopt;
  const auto simulation = simulation_of(input, options);
  if (simulation) return std::nullopt;
  return "accepted, and the simulator does not come to its end: " + simulation.error().why;
}

Breach is_no_faster_than_its_chains(const Schedule& schedule, const SimulationOptions& options) {
  const Input input = input_of(schedule);
  const auto result = simulation_of(input, options);
  if (!result) return std::nullopt;
  const Simulation& simulation = **result;
  const double makespan = simulation.makespan();
  double busiest = 0;
  for (const RankTimes& rank : simulation.ranks()) busiest = std::max(busiest, rank.busy);
  const std::pair<double, const char*> bounds[] = {
      {longest_chain(schedule, options.costs), "one microbatch alone"},
      {computed_on_the_critical_path(simulation), "its critical path"},
      {busiest, "its busiest rank"},
      {simulation.bounds().makespan.value, "no order can be below"},
  };
  for (const auto& [bound, what] : bounds) {
    if (auto breach = at_least(makespan, bound, what)) return breach;
  }
  return std::nullopt;
}

}  // namespace capo::testing::laws
