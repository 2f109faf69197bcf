#include "python/simulated.h"

#include "core/base/index.h"
#include "core/draw/picture_of.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/text/action_token.h"
#include "python/not_accepted.h"
#include "sim/durations.h"
#include "sim/report.h"

#include <fmt/format.h>

#include <list>
#include <stdexcept>
#include <utility>

namespace capo::python {

namespace {

SimulationOptions options_of(const Input& input, const Model& model, const std::string& cost,
                             const std::string& memory) {
  auto costs = costs_of(model);
  if (!costs) throw std::invalid_argument("modules: " + costs.error());
  SimulationOptions options{
      .check = {.environment = model.environment, .groups = model.groups, .modules = model.modules},
      .costs = *std::move(costs)};
  options.costs.per = CostPer::Rank;
  if (!cost.empty()) {
    const auto settings = read_costs(cost);
    if (!settings) throw std::invalid_argument("cost: " + settings.error());
    for (const CostSetting& setting : *settings) options.costs.set(setting);
  }
  if (const auto why = misfit_of(options.costs.settings, input.schedule)) {
    throw std::invalid_argument("cost: " + *why);
  }
  if (memory.empty()) return options;
  const auto change = read_memory(memory);
  if (!change) throw std::invalid_argument("mem: " + change.error());
  options.memory = *change;
  return options;
}

// A step that cannot run has the verifier's findings, which say where.
[[noreturn]] void refuse(const Input& input, const CannotSimulate& why) {
  const std::string text = fmt::format("{} cannot be simulated: {}", input.source.name, why.why);
  if (why.check.verdict == Verdict::Rejected) {
    throw NotAccepted(report_of(input, why.check, {}), text);
  }
  throw std::runtime_error(text);
}

// Holds what the picture of an order refers to.
struct DrawnOrder {
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;
};

Picture picture_of(const Input& input, const Model& model, DrawnOrder& drawn) {
  CheckOptions checks = drawn.options.check;
  checks.plan = model.plan;
  const Report report = report_of(input, check(input, checks), {});
  auto simulation = simulation_of(input, drawn.options);
  if (const std::string why = why_untimed(simulation); !why.empty()) {
    return picture_of(input, report, listed(input), why);
  }
  drawn.simulation = *std::move(simulation);
  Timeline timeline = timeline_of(*drawn.simulation);
  add_causes(*drawn.simulation, timeline);
  Picture picture = picture_of(input, report, std::move(timeline), "");
  picture.setting.push_back(times_in_words(*drawn.simulation));
  return picture;
}

}  // namespace

SimulatedStep::SimulatedStep(Input input, const Model& model, const std::string& cost,
                             const std::string& memory)
    : input_(std::move(input)), options_(options_of(input_, model, cost, memory)) {
  auto simulation = simulation_of(input_, options_);
  if (!simulation) refuse(input_, simulation.error());
  simulation_ = *std::move(simulation);
  timeline_ = timeline_of(*simulation_);
  fill_columns();
}

void SimulatedStep::fill_columns() {
  const std::size_t tasks = timeline_.tasks.size();
  for (auto* numbers : {&begin, &end}) numbers->reserve(tasks);
  for (auto* numbers : {&rank, &microbatch, &stage}) numbers->reserve(tasks);
  kind.reserve(tasks);
  for (const TimedTask& task : timeline_.tasks) {
    begin.push_back(task.begin);
    end.push_back(task.end);
    rank.push_back(timeline_.lanes[task.lane].rank);
    microbatch.push_back(task.microbatch);
    stage.push_back(task.stage.value_or(-1));
    kind.push_back(static_cast<std::uint8_t>(task.kind));
  }
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind <= as_index(Kind::Idle); ++kind) {
    names.emplace_back(word_of(static_cast<Kind>(kind)));
  }
  return names;
}

std::string SimulatedStep::label(std::size_t task) const {
  if (task >= timeline_.tasks.size()) throw std::out_of_range("there is no task of that number");
  return timeline_.label(timeline_.tasks[task].id);
}

std::string SimulatedStep::text() const {
  return text_report(*simulation_);
}

std::string SimulatedStep::json() const {
  return json_report(*simulation_, {});
}

std::string SimulatedStep::grid(std::size_t width) const {
  return text_grid(timeline_, {.width = width});
}

std::string SimulatedStep::trace() const {
  return chrome_trace(timeline_);
}

std::string drawn(const std::vector<Input>& inputs, const Model& model, const std::string& cost,
                  const std::string& memory, const std::string& format, const SvgOptions& options) {
  std::list<DrawnOrder> kept;  // which pictures refer to
  std::vector<Picture> pictures;
  for (const Input& input : inputs) {
    kept.push_back({.options = options_of(input, model, cost, memory)});
    pictures.push_back(picture_of(input, model, kept.back()));
  }
  return format == "html" ? html(pictures) : svg(pictures, options);
}

}  // namespace capo::python
