// `capo compare A B [C ...]`: the same simulation of several orders, side by side.

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "sim/report.h"

#include <CLI/CLI.hpp>

#include <deque>
#include <memory>
#include <optional>

namespace capo::cli {

namespace {

struct CompareRequest {
  std::vector<std::string> files;
  std::optional<TextForm> form;
  EnvironmentOptions environment;
  CostOptions costs;
  TextOrJson format = TextOrJson::Text;
  std::string output = "-";
  Limits limits;
};

/// One of the compared orders. The simulation refers to the members before it.
struct Compared {
  JudgedInput judged;
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;
};

int compare(const CompareRequest& request) {
  if (request.files.size() < 2) {
    throw CLI::ValidationError("FILE", "there are at least two to compare");
  }
  // One model for all: it may come from a pipe, which can be read once.
  const auto declared =
      declared_model({.input = {.limits = request.limits}, .environment = request.environment});
  if (!declared) return refuse(declared.error());
  std::deque<Compared> compared;  // addresses stay
  std::vector<Named> named;
  for (const std::string& file : request.files) {
    auto judged =
        judged_input({.input = {.file = file, .form = request.form, .limits = request.limits},
                      .environment = request.environment},
                     *declared);
    if (!judged) return refuse(judged.error());
    Compared& each = compared.emplace_back();
    each.judged = *std::move(judged);
    each.options = request.costs.resolve(each.judged.model);
    request.costs.refuse_misfits(each.judged.input.schedule, each.options.costs);
    auto simulation = simulation_of(each.judged.input, each.options);
    if (!simulation) return refuse_simulation(each.judged.input, simulation.error());
    each.simulation = std::move(*simulation);
    named.push_back({.name = file, .simulation = each.simulation.get()});
  }
  const std::string text =
      request.format == TextOrJson::Json ? json_comparison(named) : text_comparison(named);
  return exit_code_after(write_output(request.output, text));
}

}  // namespace

Run add_compare(CLI::App& app) {
  auto* command =
      app.add_subcommand("compare", "Simulate several orders and print them side by side");
  command->footer("Example: capo compare 1f1b.order zb-h1.order zb-2p.order --cost comm=0.1");
  auto request = std::make_shared<CompareRequest>();
  command->add_option("FILE", request->files, "Two orders or more, in any form that `check` reads");
  add_choice(*command, "--form", request->form, form_words(),
             "Their form; default: told by their beginnings");
  request->environment.add_to(*command);
  request->environment.overlaps_anyway = true;  // every layer is taken apart
  request->costs.add_to(*command);
  add_format(*command, request->format);
  command->add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  add_size_limits(*command, request->limits);
  return [request] { return compare(*request); };
}

}  // namespace capo::cli
