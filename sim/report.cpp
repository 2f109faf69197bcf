#include "sim/report.h"

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/text/number.h"
#include "core/timeline/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

std::string links_in_words(const Simulation& simulation) {
  switch (simulation.subject().links) {
    case Links::Ideal:
      return "links ideal: a message takes its time, occupies nobody and never queues";
    case Links::Rendezvous:
      return "links queue, and a send lasts until its receive";
    case Links::Buffered:
      return "links queue, and a send does not wait for its receive";
  }
  CAPO_UNREACHABLE();
}

std::string_view unit_of_time(const Costs& costs) {
  return costs.in_microseconds ? "seconds" : "units of --cost";
}

// A time in seconds, or in the unit of --cost.
std::string time(const Simulation& simulation, double value) {
  return figure(simulation.costs().in_microseconds ? value * 1e-6 : value);
}

std::string memory_words(const RankMemory& memory) {
  return byte_words(memory.peak() + memory.weights);
}

double above(double value, double bound) {
  return bound > 0 ? value / bound - 1 : 0;
}

std::string bound_in_words(const Simulation& simulation, const Bound& bound, double value) {
  if (bound.value <= 0) return "";
  return fmt::format("at least {} ({}{}), {} above", time(simulation, bound.value), bound.by,
                     bound.rank < 0 ? "" : fmt::format(" at rank {}", bound.rank),
                     percent(above(value, bound.value)));
}

std::string idle_in_words(const Simulation& simulation, const Idle& idle) {
  const auto at = [&](double value) { return time(simulation, value); };
  std::string text = fmt::format("{} from {} to {} ({})", name_of(idle.cause), at(idle.begin),
                                 at(idle.end), at(idle.end - idle.begin));
  if (idle.next == kNoTask) return text;
  text += fmt::format(" before {}", simulation.label(idle.next));
  if (idle.waits_for != kNoTask) {
    text += fmt::format(", behind {} of rank {}", simulation.label(idle.waits_for),
                        simulation.graph().tasks[idle.waits_for].rank);
  }
  if (idle.exposed > 0) text += fmt::format("; {} of it communication", at(idle.exposed));
  return text;
}

std::string rank_table(const Simulation& simulation) {
  const std::optional<PlanResult>& planned = simulation.planned();
  std::vector<std::vector<std::string>> rows{
      {"rank", "busy", "bubble", "exposed comm", "first", "last", "peak", "at", "microbatches"}};
  if (planned) rows.front().emplace_back("memory");
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    const RankTimes& rank = simulation.ranks()[r];
    const MemoryPeak& peak = simulation.peaks()[r];
    const auto at = [&](double value) { return time(simulation, value); };
    rows.push_back({std::to_string(r), at(rank.busy), at(rank.bubble), at(rank.exposed),
                    at(rank.first), at(rank.last), figure(peak.held), at(peak.time),
                    std::to_string(peak.microbatches)});
    if (planned) rows.back().push_back(memory_words(planned->ranks[r]));
  }
  return table(rows);
}

// The memory column is no part of the simulation, but of a plan.
std::string memory_note(const Simulation& simulation) {
  if (!simulation.planned()) return "";
  return fmt::format(
      "memory: buffers under plan {} and weights, as `capo check --plan {}` counts them\n",
      name_of(simulation.planned()->kind), name_of(simulation.planned()->kind));
}

std::string origins_in_words(const Simulation& simulation) {
  if (simulation.origins().empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const CostOrigin& origin : simulation.origins()) {
    rows.push_back({origin.module.empty() ? "(stages)" : origin.module, std::string(origin.task),
                    time(simulation, origin.microseconds), origin.why});
  }
  return fmt::format("\nCosts, in {}, by rates of {}:\n{}", unit_of_time(simulation.costs()),
                     simulation.rates(), table(rows, 3));
}

Json origins_json(const Simulation& simulation) {
  Json list = Json::array();
  for (const CostOrigin& origin : simulation.origins()) {
    list.push_back({{"module", origin.module.empty() ? Json() : Json(origin.module)},
                    {"task", origin.task},
                    {"microseconds", origin.microseconds},
                    {"why", origin.why}});
  }
  return list;
}

std::string longest_waits(const Simulation& simulation) {
  struct Wait {
    std::size_t rank;
    const Idle* idle;
  };
  std::vector<Wait> waits;
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    for (const Idle& idle : simulation.ranks()[r].idle) waits.push_back({r, &idle});
  }
  if (waits.empty()) return "\nNo rank is ever idle.\n";
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.idle->end - a.idle->begin > b.idle->end - b.idle->begin;
  });
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format("\nIdle {}, the longest:\n", counted(waits.size(), "time"));
  for (std::size_t i = 0; i < std::min(kShown, waits.size()); ++i) {
    text +=
        fmt::format("  rank {}: {}\n", waits[i].rank, idle_in_words(simulation, *waits[i].idle));
  }
  return text;
}

std::string path_in_words(const Simulation& simulation) {
  const auto path = critical_path(simulation.subject(), simulation.times());
  constexpr std::size_t kEnds = 4;
  std::string text = fmt::format("\nCritical path, {}:", counted(path.size(), "task"));
  std::int32_t rank = -1;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i == kEnds && path.size() > 2 * kEnds + 1) {
      text += " ...";
      i = path.size() - kEnds;
    }
    const Task& task = simulation.graph().tasks[path[i]];
    if (task.rank != rank) text += fmt::format(" [rank {}]", task.rank);
    rank = task.rank;
    text += ' ' + simulation.label(path[i]);
  }
  return text + '\n';
}

Json bound_json(const Bounds& bounds) {
  const auto detail = [](const Bound& bound) {
    return Json{{"by", bound.by}, {"rank", bound.rank < 0 ? Json() : Json(bound.rank)}};
  };
  return {{"makespan", bounds.makespan.value},
          {"span", bounds.span.value},
          {"makespan_by", detail(bounds.makespan)},
          {"span_by", detail(bounds.span)},
          {"memory_limit", std::isfinite(bounds.memory) ? Json(bounds.memory) : Json()}};
}

Json task_json(const Simulation& simulation, TaskId task) {
  if (task == kNoTask) return nullptr;
  const Task& of = simulation.graph().tasks[task];
  return {{"task", simulation.label(task)},
          {"rank", std::int32_t{of.rank}},
          {"start", simulation.times().start_of(simulation.graph(), task)},
          {"end", simulation.times().end_of(simulation.graph(), task)}};
}

Json rank_json(const Simulation& simulation, std::size_t r) {
  const RankTimes& rank = simulation.ranks()[r];
  const MemoryPeak& peak = simulation.peaks()[r];
  Json json{{"busy", rank.busy},
            {"bubble", rank.bubble},
            {"exposed_comm", rank.exposed},
            {"first", rank.first},
            {"last", rank.last},
            {"peak_activations", peak.held},
            {"peak_at", peak.time},
            {"peak_task", peak.task == kNoTask ? Json() : Json(simulation.label(peak.task))},
            {"microbatches_in_flight", peak.microbatches},
            {"peak_bytes", nullptr}};
  if (const auto& planned = simulation.planned()) {
    json["peak_bytes"] = planned->ranks[r].peak() + planned->ranks[r].weights;
  }
  return json;
}

Json idle_json(const Simulation& simulation, std::size_t most, std::size_t& total) {
  Json list = Json::array();
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    for (const Idle& idle : simulation.ranks()[r].idle) {
      if (total++ >= most) continue;
      list.push_back({{"rank", r},
                      {"begin", idle.begin},
                      {"end", idle.end},
                      {"cause", name_of(idle.cause)},
                      {"exposed_comm", idle.exposed},
                      {"next", idle.next == kNoTask ? Json() : Json(simulation.label(idle.next))},
                      {"waits_for", task_json(simulation, idle.waits_for)}});
    }
  }
  return list;
}

Json path_json(const Simulation& simulation, std::size_t most, std::size_t& total) {
  Json list = Json::array();
  for (const TaskId task : critical_path(simulation.subject(), simulation.times())) {
    if (total++ < most) list.push_back(task_json(simulation, task));
  }
  return list;
}

Json figures_json(const Simulation& simulation) {
  return {{"makespan", simulation.makespan()},
          {"span", simulation.span()},
          {"bubble_rate", simulation.bubble_rate()},
          {"bubble_rate_makespan", simulation.bubble_rate_of_makespan()}};
}

double sum_of_exposed(const Simulation& simulation) {
  const auto& ranks = simulation.ranks();
  return std::accumulate(ranks.begin(), ranks.end(), 0.0,
                         [](double sum, const RankTimes& rank) { return sum + rank.exposed; });
}

std::int32_t most_microbatches(const Simulation& simulation) {
  std::int32_t most = 0;
  for (const MemoryPeak& peak : simulation.peaks()) most = std::max(most, peak.microbatches);
  return most;
}

}  // namespace

std::string text_report(const Simulation& simulation) {
  const MemoryChange& memory = simulation.memory_model();
  std::string text =
      fmt::format("{}, {}, {}{}; {}\ntimes in {}, memory f={},b={},w={} of a microbatch\n\n",
                  counted(simulation.ranks().size(), "rank"),
                  counted(simulation.microbatches(), "microbatch", "microbatches"),
                  counted(simulation.graph().tasks.size(), "task"),
                  simulation.replayed() ? ", as replayed" : "", links_in_words(simulation),
                  unit_of_time(simulation.costs()), figure(memory.forward), figure(memory.backward),
                  figure(memory.weight));
  text += table(
      {{"makespan", time(simulation, simulation.makespan()), "bubble",
        percent(simulation.bubble_rate_of_makespan()),
        bound_in_words(simulation, simulation.bounds().makespan, simulation.makespan())},
       {"span", time(simulation, simulation.span()), "bubble", percent(simulation.bubble_rate()),
        bound_in_words(simulation, simulation.bounds().span, simulation.span())}},
      4);
  text += '\n' + rank_table(simulation) + memory_note(simulation);
  return text + longest_waits(simulation) + path_in_words(simulation) +
         origins_in_words(simulation);
}

std::string json_report(const Simulation& simulation, const ReportOptions& options) {
  const MemoryChange& memory = simulation.memory_model();
  Json json{{"schema", 1}};
  json.update(figures_json(simulation));
  json["microbatches"] = simulation.microbatches();
  json["tasks"] = simulation.graph().tasks.size();
  json["replayed"] = simulation.replayed();
  json["time_unit"] = simulation.costs().in_microseconds ? "microsecond" : "cost";
  json["links"] = name_of(simulation.subject().links);
  json["memory_model"] = {{"f", memory.forward}, {"b", memory.backward}, {"w", memory.weight}};
  json["memory_plan"] = simulation.planned() ? Json(name_of(simulation.planned()->kind)) : Json();
  json["costs"] = origins_json(simulation);
  json["rates"] = simulation.rates().empty() ? Json() : Json(simulation.rates());
  json["ranks"] = Json::array();
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    json["ranks"].push_back(rank_json(simulation, r));
  }
  json["lower_bound"] = bound_json(simulation.bounds());
  json["above_bound"] = {
      {"makespan", above(simulation.makespan(), simulation.bounds().makespan.value)},
      {"span", above(simulation.span(), simulation.bounds().span.value)}};
  std::size_t idle_total = 0;
  std::size_t path_total = 0;
  json["idle"] = idle_json(simulation, options.most, idle_total);
  json["idle_total"] = idle_total;
  json["critical_path"] = path_json(simulation, options.most, path_total);
  json["critical_path_total"] = path_total;
  return json.dump(1) + '\n';
}

std::string text_comparison(const std::vector<Named>& simulations) {
  std::vector<std::vector<std::string>> rows{{""}};
  for (const Named& each : simulations) {
    rows.front().push_back(each.name + (each.simulation->replayed() ? ", as replayed" : ""));
  }
  const auto row = [&](const char* what, auto value, auto print, bool relative) {
    std::vector<std::string> cells{what};
    const double first = value(*simulations.front().simulation);
    for (const Named& each : simulations) {
      const double here = value(*each.simulation);
      std::string cell = print(here);
      if (relative && here != first && first != 0) {
        cell += fmt::format(" ({:+.2f} %)", (here / first - 1) * 100);
      }
      cells.push_back(std::move(cell));
    }
    rows.push_back(std::move(cells));
  };
  row(
      "makespan", [](const Simulation& s) { return s.makespan(); }, figure, true);
  row(
      "span", [](const Simulation& s) { return s.span(); }, figure, true);
  row(
      "bubble of makespan", [](const Simulation& s) { return s.bubble_rate_of_makespan(); },
      percent, false);
  row(
      "bubble of span", [](const Simulation& s) { return s.bubble_rate(); }, percent, false);
  row("exposed comm, all ranks", sum_of_exposed, figure, true);
  row(
      "peak memory", [](const Simulation& s) { return s.peak(); }, figure, true);
  row(
      "microbatches in flight",
      [](const Simulation& s) { return static_cast<double>(most_microbatches(s)); }, figure, true);
  row(
      "makespan at least", [](const Simulation& s) { return s.bounds().makespan.value; }, figure,
      false);
  row(
      "tasks", [](const Simulation& s) { return static_cast<double>(s.graph().tasks.size()); },
      figure, true);
  return table(rows);
}

std::string json_comparison(const std::vector<Named>& simulations) {
  Json json{{"schema", 1}, {"simulations", Json::array()}};
  for (const Named& each : simulations) {
    Json one{{"name", each.name}, {"replayed", each.simulation->replayed()}};
    one.update(figures_json(*each.simulation));
    one["exposed_comm"] = sum_of_exposed(*each.simulation);
    one["peak_activations"] = each.simulation->peak();
    one["microbatches_in_flight"] = most_microbatches(*each.simulation);
    one["tasks"] = each.simulation->graph().tasks.size();
    one["lower_bound"] = bound_json(each.simulation->bounds());
    json["simulations"].push_back(std::move(one));
  }
  return json.dump(1) + '\n';
}

}  // namespace capo
