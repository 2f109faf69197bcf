#include "core/base/index.h"
#include "sim/report.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

Json figures_json(const Simulation& simulation) {
  return {{"makespan", simulation.makespan()},
          {"span", simulation.span()},
          {"bubble_rate", simulation.bubble_rate()},
          {"bubble_rate_makespan", simulation.bubble_rate_of_makespan()}};
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
            {"peak_bytes", nullptr},
            {"quantizing", nullptr}};
  if (const auto& planned = simulation.planned()) {
    json["peak_bytes"] = planned->ranks[r].peak() + planned->ranks[r].weights;
  }
  if (simulation.tells_quantization()) json["quantizing"] = simulation.quantizing_of(r);
  return json;
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

}  // namespace

std::string json_report(const Simulation& simulation, const ReportOptions& options) {
  const MemoryChange& memory = simulation.memory_model();
  Json json{{"schema", 1}};
  json.update(figures_json(simulation));
  json["microbatches"] = simulation.microbatches();
  json["tasks"] = simulation.graph().tasks.size();
  json["replayed"] = simulation.replayed();
  json["time_unit"] = simulation.costs().in_microseconds ? "microsecond" : "cost";
  json["cost_per"] = name_of(simulation.costs().per);
  json["links"] = name_of(simulation.subject().links);
  json["memory_model"] = {
      {"f", memory.forward}, {"b", memory.backward}, {"w", memory.weight}, {"keep", memory.keep}};
  const Recomputed& recomputed = simulation.costs().recomputed;
  json["recomputed"] = recomputed.any() ? Json(to_text(recomputed)) : Json();
  json["memory_plan"] = simulation.planned() ? Json(name_of(simulation.planned()->kind)) : Json();
  json["costs"] = origins_json(simulation);
  json["rates"] = simulation.rates().empty() ? Json() : Json(simulation.rates());
  json["ranks"] = Json::array();
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    json["ranks"].push_back(rank_json(simulation, r));
  }
  json["lower_bound"] = bound_json(simulation.bounds());
  json["above_bound"] = {
      {"makespan", simulation.bounds().makespan.exceeded_by(simulation.makespan())},
      {"span", simulation.bounds().span.exceeded_by(simulation.span())}};
  std::size_t idle_total = 0;
  std::size_t path_total = 0;
  json["idle"] = idle_json(simulation, options.most, idle_total);
  json["idle_total"] = idle_total;
  json["critical_path"] = path_json(simulation, options.most, path_total);
  json["critical_path_total"] = path_total;
  return json.dump(1) + '\n';
}

std::string json_comparison(const std::vector<Named>& simulations, const CompareOptions& options) {
  const std::vector<Named> order = listed(simulations, options);
  const std::vector<Choosable> orders = choosable(order, options.memory_limit);
  const std::vector<bool> marked = best(orders, options.sort);
  Json json{{"schema", 1},
            {"cost_per", name_of(order.front().simulation->costs().per)},
            {"sort", name_of(options.sort)},
            {"simulations", Json::array()}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Named& each = order[i];
    Json one{{"name", each.name}, {"replayed", each.simulation->replayed()}};
    one.update(figures_json(*each.simulation));
    one["exposed_comm"] = each.simulation->exposed();
    one["peak_activations"] = each.simulation->peak();
    one["microbatches_in_flight"] = each.simulation->microbatches_in_flight();
    one["tasks"] = each.simulation->graph().tasks.size();
    one["lower_bound"] = bound_json(each.simulation->bounds());
    one["fits"] = options.memory_limit ? Json(orders[i].fits) : Json();
    one["best"] = static_cast<bool>(marked[i]);
    json["simulations"].push_back(std::move(one));
  }
  return json.dump(1) + '\n';
}

}  // namespace capo
