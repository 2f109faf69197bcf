#include "cli/options/cost_options.h"

#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "cli/options/judged_input.h"
#include "cli/options/numbers.h"
#include "core/report/report.h"
#include "sim/device_costs.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace capo::cli {

void CostOptions::add_to(CLI::App& app) {
  const std::string group = "Costs (units are yours: one of time, one of bytes)";
  app.add_option(
         "--cost", costs,
         "Times of one microbatch on one rank, whose chunks share them: "
         "f=12,b=13,w=9,comm=1; with a scope r0.c2.l1:f=3 of a rank, chunk or layer, "
         "r0-r1:comm=2,bw=100 of a link in both directions, \"r0>r1:comm=2\" in one. Keys: "
         "f b w re dispatch combine fuse beside rest pace experts unshard reshard reduce comm "
         "bw bytes overlap slowdown crowded ahead. Repeatable, the last one wins; default: the "
         "model file's, else f=1,b=1,w=1,comm=0")
      ->group(group)
      ->allow_extra_args(false);
  add_cost_per(app, per)->group(group);
  app.add_option("--mem", memory,
                 "What a microbatch of one rank takes and gives up: f=1,b=-0.5,w=-0.5; a chunk has "
                 "its share. Default: f=1,b=0,w=-1, all is held until the weight gradient is done; "
                 "keep=0 of f by chunks that recompute")
      ->group(group);
  add_recompute(app, recompute)->group(group);
  add_above_zero(app, "--memory", memory_limit,
                 "What a rank may hold, in the unit of --mem: the lower bounds assume it, and an "
                 "order that exceeds it is not chosen; default: what the order itself holds")
      ->group(group);
  std::vector<std::string> devices_known;
  for (const DeviceFigures& known : known_devices()) devices_known.emplace_back(known.name);
  add_words(app, "--device-costs", devices_known, "",
            "Times that follow from the model's configuration on this device, by its data sheet: "
            "h100, h200 or b200; costs that the model file states stay, and --cost overrides",
            [this](const std::string& name) { device = name; })
      ->group(group);
  app.add_option("--efficiency", efficiency,
                 "Shares of the device's rates that are reached; default: "
                 "products=0.6,attention=0.5,memory=0.8,links=0.8")
      ->group(group);
  add_choice(app, "--links", ideal_links, {{"ideal", true}, {"queued", false}},
             "ideal: a message takes its time and occupies nobody; queued: as the environment "
             "says. Default: ideal unless transfers are declared or written in the order")
      ->group(group);
  app.add_option("--devices", devices,
                 "The device of each rank, `0,0,1,1`: ranks that share one compute side by "
                 "side, as cost `beside` says; default: one each")
      ->group(group);
}

CLI::Option* add_cost_per(CLI::App& app, CostPer& per) {
  return add_choice(
      app, "--cost-per", per, words_of({CostPer::Rank, CostPer::Chunk}),
      "What f, b, w, dispatch and combine of --cost are of, where they name no chunk: "
      "one microbatch on one rank, of which each chunk takes its share, or in one "
      "chunk");
}

CLI::Option* add_recompute(CLI::App& app, std::string& text) {
  return app.add_option(
      "--recompute", text,
      "Chunks that keep the share `keep` of --mem alone of what a forward takes, and run it again, "
      "for the cost `re`, when the backward begins: all, or r0c1,r2,c2 of a chunk, a rank, and a "
      "chunk of every rank");
}

Recomputed recomputed_chunks(const std::string& text) {
  if (text.empty()) return {};
  auto read = read_recomputed(text);
  if (!read) throw CLI::ValidationError("--recompute", read.error());
  return *std::move(read);
}

void refuse_recomputed(const Recomputed& recomputed, const Schedule& schedule,
                       const ModuleTable& modules) {
  if (const auto why = misfit_of(recomputed, schedule, modules)) {
    throw CLI::ValidationError("--recompute", *why);
  }
}

std::vector<CostSetting> cost_settings(const std::vector<std::string>& texts) {
  std::vector<CostSetting> all;
  for (const std::string& text : texts) {
    const auto settings = read_costs(text);
    if (!settings) throw CLI::ValidationError("--cost", settings.error());
    all.insert(all.end(), settings->begin(), settings->end());
  }
  return all;
}

std::optional<MemoryChange> memory_change(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto change = read_memory(text);
  if (!change) throw CLI::ValidationError("--mem", change.error());
  return *change;
}

// Gives modules the costs that follow from the device, and tells where each comes from.
void CostOptions::price_on_device(Model& model, SimulationOptions& options) const {
  if (device.empty()) {
    if (!efficiency.empty()) throw CLI::ValidationError("--efficiency", "needs --device-costs");
    return;
  }
  const auto shares = efficiency.empty() ? Efficiency{} : read_efficiency(efficiency);
  if (!shares) throw CLI::ValidationError("--efficiency", shares.error());
  const auto known = known_devices();
  const auto figures = std::find_if(known.begin(), known.end(),
                                    [&](const DeviceFigures& each) { return each.name == device; });
  auto origins = price(model, *figures, *shares);
  if (!origins) throw CLI::ValidationError("--device-costs", origins.error());
  options.origins = *std::move(origins);
  options.rates = figures->source;
}

SimulationOptions CostOptions::resolve(const Model& stated) const {
  Model model = stated;
  SimulationOptions options{.memory = memory_change(memory), .memory_limit = memory_limit};
  price_on_device(model, options);
  auto declared = costs_of(model);
  if (!declared) throw CLI::ValidationError("--model", declared.error());
  options.check = check_options_of(model);
  options.costs = std::move(*declared);
  options.check.plan = {};  // what a plan adds to times is in the costs
  for (const CostSetting& setting : cost_settings(costs)) options.costs.set(setting);
  if (!devices.empty()) options.costs.devices = number_list(devices, "--devices", 0);
  options.costs.per = per;
  options.costs.recomputed = recomputed_chunks(recompute);
  options.ideal_links = ideal_links;
  return options;
}

void CostOptions::refuse_misfits(const Schedule& schedule, const SimulationOptions& given) const {
  const std::size_t ranks = schedule.ranks.size();
  const auto& on = given.costs.devices;
  if (!on.empty() && on.size() != ranks) {
    throw CLI::ValidationError(
        "--devices",
        fmt::format("names the devices of {} ranks, but there are {}", on.size(), ranks));
  }
  if (const auto why = misfit_of(given.costs.settings, schedule)) {
    throw CLI::ValidationError("--cost", *why);
  }
  refuse_recomputed(given.costs.recomputed, schedule, given.check.modules);
}

int refuse_simulation(const Input& input, const CannotSimulate& why) {
  if (why.check.verdict == Verdict::Rejected) {
    CheckResult result = why.check;
    result.diagnostics.revise([](Diagnostic& finding) {
      if (!finding.help.edits.empty()) finding.help = {};  // `capo check` tries them
    });
    print_stderr(to_text(report_of(input, std::move(result), {})));
  }
  print_stderr(fmt::format("error: {} cannot be simulated: {}\n", input.source.name, why.why));
  return kFindings;
}

}  // namespace capo::cli
