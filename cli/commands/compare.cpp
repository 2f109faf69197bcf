// `capo compare A B [C ...]`: the same simulation of several orders, side by side.

#include "cli/commands/commands.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/placed_input.h"
#include "cli/options/refuse_simulation.h"
#include "sim/report.h"

#include <CLI/CLI.hpp>

#include <deque>
#include <memory>

namespace capo::cli {

namespace {

struct CompareRequest {
  std::vector<std::string> files;
  std::string form;
  EnvironmentOptions environment;
  CostOptions costs;
  std::string format = "text";
  std::string output = "-";
  Limits limits;
};

/// One of the compared orders; the simulation refers to what stands before it.
struct Compared {
  PlacedInput placed;
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;
};

int compare(const CompareRequest& request) {
  if (request.files.size() < 2) {
    throw CLI::ValidationError("FILE", "there are at least two to compare");
  }
  std::deque<Compared> compared;  // addresses stay
  std::vector<Named> named;
  for (const std::string& file : request.files) {
    InputOptions options;
    options.file = file;
    options.form = request.form;
    options.limits = request.limits;
    auto loaded = load_placed(options, request.environment);
    if (const int* code = std::get_if<int>(&loaded)) return *code;
    Compared& each = compared.emplace_back();
    each.placed = std::get<PlacedInput>(std::move(loaded));
    each.options = request.costs.resolve(each.placed.model);
    request.costs.refuse_misfits(each.placed.input.schedule, each.options.costs);
    auto simulation = simulation_of(each.placed.input, each.options);
    if (!simulation) return refuse_simulation(each.placed.input, simulation.error());
    if ((*simulation)->subject().links != Links::Ideal) {
      request.environment.refuse_idle_overlap(each.placed.model);
    }
    each.simulation = std::move(*simulation);
    named.push_back({.name = file, .simulation = each.simulation.get()});
  }
  const std::string text =
      request.format == "json" ? json_comparison(named) : text_comparison(named);
  const auto failed = write_output(request.output, text);
  return failed ? fail(*failed) : kAccepted;
}

}  // namespace

Run add_compare(CLI::App& app) {
  auto* command =
      app.add_subcommand("compare", "Simulate several orders and print them side by side");
  command->footer("Example: capo compare 1f1b.order zb-h1.order zb-2p.order --cost comm=0.1");
  auto request = std::make_shared<CompareRequest>();
  command->add_option("FILE", request->files, "Two orders or more, in any form that `check` reads");
  command->add_option("--form", request->form, "Their form; default: told by their beginnings");
  request->environment.add_to(*command);
  request->environment.overlaps_anyway = true;  // ideal links take every layer apart
  request->costs.add_to(*command);
  command->add_option("--format", request->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  add_size_limits(*command, request->limits);
  return [request] { return compare(*request); };
}

}  // namespace capo::cli
