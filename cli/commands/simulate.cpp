// `capo simulate FILE`: when each task runs, what the step costs, and how far that is from the
// best.

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/grid_flags.h"
#include "cli/options/judged_input.h"
#include "core/base/assert.h"
#include "core/timeline/timeline.h"
#include "sim/report.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace capo::cli {

namespace {

enum class SimulateFormat { Text, Json, Grid, Trace };

struct SimulateRequest : InputRequest {
  CostOptions costs;
  SimulateFormat format = SimulateFormat::Text;
  std::string output = "-";
  std::string trace;
  GridFlags grid;
  std::optional<std::int32_t> rank;  ///< of the grid; nullopt: all
  ReportOptions report;
};

GridOptions grid_of(const SimulateRequest& request) {
  GridOptions grid = request.grid.options_for(request.output);
  grid.rank = request.rank;
  return grid;
}

void refuse_rank(const SimulateRequest& request, std::size_t ranks) {
  if (!request.rank) return;
  if (request.format != SimulateFormat::Grid) {
    throw CLI::ValidationError("--rank", "is for --format grid, where it chooses a line");
  }
  if (RankId(*request.rank).index() >= ranks) {
    throw CLI::ValidationError("--rank", ranks == 1
                                             ? "there is rank 0 and no other"
                                             : fmt::format("there are ranks 0 to {}", ranks - 1));
  }
}

std::string render(const Simulation& simulation, const SimulateRequest& request) {
  switch (request.format) {
    case SimulateFormat::Text:
      return text_report(simulation);
    case SimulateFormat::Json:
      return json_report(simulation, request.report);
    case SimulateFormat::Grid:
      return text_grid(timeline_of(simulation), grid_of(request));
    case SimulateFormat::Trace:
      return chrome_trace(timeline_of(simulation));
  }
  CAPO_UNREACHABLE();
}

int simulate_file(const SimulateRequest& request) {
  const auto judged = judged_input(request);
  if (!judged) return refuse(judged.error());
  const Input& input = judged->input;
  const Model& model = judged->model;
  refuse_rank(request, input.schedule.ranks.size());
  SimulationOptions options = request.costs.resolve(model);
  options.memory_plan = model.plan;
  request.costs.refuse_misfits(input.schedule, options);
  const auto simulation = simulation_of(input, options);
  if (!simulation) return refuse_simulation(input, simulation.error());

  if (!request.trace.empty()) {
    if (const auto failed = write_file(request.trace, chrome_trace(timeline_of(**simulation)))) {
      return fail(*failed);
    }
  }
  const std::string text = render(**simulation, request);
  return exit_code_after(write_output(request.output, text));
}

}  // namespace

Run add_simulate(CLI::App& command) {
  command.footer(
      "Example: capo simulate schedule.order --cost f=12,b=13,w=9,comm=1 --trace step.json");
  auto request = std::make_shared<SimulateRequest>();
  request->input.add_to(command);
  request->environment.add_to(command);
  request->environment.overlaps_anyway = true;  // every layer is taken apart
  request->costs.add_to(command);
  request->fuse.add_to(command);
  add_choice(command, "--format", request->format,
             {{"text", SimulateFormat::Text},
              {"json", SimulateFormat::Json},
              {"grid", SimulateFormat::Grid},
              {"trace", SimulateFormat::Trace}},
             "text, json, grid (the timeline as text) or trace (for Perfetto)");
  command.add_option("--trace", request->trace, "Also write the timeline here as a Chrome trace");
  request->grid.add_to(command);
  command.add_option("--rank", request->rank, "Only this rank's line of the grid")
      ->check(CLI::Range(0, 1 << 24));
  command
      .add_option("--max-items", request->report.most,
                  "Idle intervals, and tasks of the critical path, that JSON lists")
      ->capture_default_str();
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  return [request] { return simulate_file(*request); };
}

}  // namespace capo::cli
