// `capo run FILE`: executes the plan that was verified, and compares every gradient with eager
// execution and with float64.
//
// The order runs in this process, or in one for each rank: mpirun has launched them, or capo makes
// them of itself (--transport). What is told of it is in run_reported.cpp.

#include "run/run.h"
#include "cli/commands/commands.h"
#include "cli/commands/run_request.h"
#include "cli/options/choice.h"
#include "cli/options/device.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "cli/options/launched.h"
#include "cli/options/progress.h"
#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/base/plural.h"
#include "run/report.h"
#include "run/setup/complete_model.h"
#include "run/setup/reductions.h"
#include "run/setup/replicas.h"
#include "run/setup/step_layers.h"
#include "sim/simulation.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace capo::cli {

namespace {

// Seconds of a warm-up on a device: in half of it a clock falls and rises about once.
constexpr double kWarmUpOfRun = 1;

// The makespan that the simulator gives the step with the costs that the model file states.
// Messages go as they do in a run: one after the other, and a receive behind what its rank computed
// before.
Result<double, std::string> predicted_makespan(const Input& input, const Model& model,
                                               const run::Division& division) {
  auto costs = costs_of(model);
  if (!costs) return costs.error();
  if (!costs->in_microseconds) {
    return std::string("needs a model file with costs; `capo measure` writes one");
  }
  SimulationOptions options{.check = check_options_of(model), .costs = *std::move(costs)};
  options.check.plan = {};  // what a plan adds to times is in the costs
  // The ranks of one process share its device, and have its pace.
  const std::vector<double> paces = std::exchange(options.costs.paces, {});
  for (std::int32_t rank = 0; rank < division.ranks; ++rank) {
    const std::int32_t device = division.home(rank);
    options.costs.devices.push_back(device);
    if (paces.empty()) continue;
    const bool stated = as_index(device) < paces.size();
    options.costs.paces.push_back(stated ? paces[as_index(device)] : 1);
  }
  options.ideal_links = false;
  auto simulation = simulation_of(input, options);
  if (!simulation) {
    options.ideal_links.reset();
    simulation = simulation_of(input, options);
  }
  if (!simulation) return "cannot be simulated: " + simulation.error().why;
  return (*simulation)->makespan();
}

// nullopt if none is asked for.
std::optional<double> prediction_of(const RunRequest& request, const JudgedInput& judged,
                                    const run::Division& division) {
  if (!request.predict) return std::nullopt;
  const auto makespan = predicted_makespan(judged.input, judged.model, division);
  if (!makespan) throw CLI::ValidationError("--predict", makespan.error());
  return *makespan;
}

// Runs the order through the gate that was asked for: verified, or admitted unchecked.
template <typename Gate, typename Start>
int run_through(Gate gate, Start start, const JudgedInput& judged, const run::CompletedModel& model,
                std::optional<double> predicted, const RunRequest& request, run::Engine& engine) {
  auto admitted = gate(judged.input, model.options);
  if (const auto* why = std::get_if<NotVerified>(&admitted)) {
    return refuse_unverified(judged, *why, request, model.options, engine);
  }
  const auto& plan = std::get<0>(admitted);
  run::RunOptions options = request.options;
  options.sends = run::mode_of(model.options.environment);
  const bool warms_up = request.predict && on_device(engine);
  options.warm_up = request.warm_up.value_or(warms_up ? kWarmUpOfRun : 0);
  auto report = [&] {
    Progress progress("run", request.options.replays);  // its line is gone when others are printed
    options.replayed = [&](std::uint32_t number) { progress.set(number); };
    return start(engine, plan, options);
  }();
  if (!report) return report_failure(report.error(), request, plan.step(), engine.name());
  if (request.launched != nullptr && !request.launched->reports()) return kAccepted;
  report->predicted_makespan = predicted;
  return write_run(*report, plan.step(), model.assumed, request);
}

// Refuses an option about the times of a step's parts if there are no such times.
void refuse_without_times(const RunRequest& request, bool asked, const char* option) {
  if (!asked) return;
  if (request.options.replays == 0) {
    throw CLI::ValidationError(option, "needs a replay, whose times it is of");
  }
  if (request.options.graphs == Granularity::PerStep) {
    throw CLI::ValidationError(option,
                               "a step that is one graph has no times of its parts; "
                               "take --graphs per-action");
  }
}

// Tells that there are not as many processes as ranks.
int refuse_processes(const RunRequest& request, const run::Division& division,
                     const std::string& name) {
  const std::int32_t processes = request.launched->processes().size();
  const std::string_view transport = request.transport.kind == TransportKind::Mpi ? "mpi" : "nccl";
  return fail({.kind = ErrorKind::Environment,
               .message = fmt::format("{} has {} and was started in {}", name,
                                      counted(division.ranks, "rank"),
                                      counted(processes, "process", "processes")),
               .help = fmt::format("mpirun -n {} capo run ... --transport {}", division.processes(),
                                   transport)});
}

run::Division division_of(const RunRequest& request, const Input& input) {
  const auto ranks = static_cast<std::int32_t>(std::ssize(input.schedule.ranks)) * request.replicas;
  const bool apart = request.transport.kind != TransportKind::InProcess;
  return {.ranks = ranks, .per_process = apart ? request.transport.ranks_per_device : ranks};
}

// Refuses before anything runs, and says so in one of the processes; one that fails alone ends all.
Result<std::unique_ptr<run::Engine>> engine_of(const RunRequest& request) {
  if (request.transport.kind != TransportKind::Nccl) return engine_for(request.device);
  const auto ordinal = request.launched->device_or_end();
  if (!ordinal) return ordinal.error();
  auto engine = engine_for(request.device, *ordinal);
  if (!engine) request.launched->end_all_for(engine.error());
  return engine;
}

void refuse_many_replicas(const RunRequest& request, const Input& input) {
  const std::uint64_t ranks =
      input.schedule.ranks.size() * static_cast<std::uint64_t>(request.replicas);
  if (request.replicas == 1 || ranks <= request.input.limits.ranks) return;
  throw CLI::ValidationError("--replicas",
                             fmt::format("makes {} ranks, and the limit is {} (--max-ranks)", ranks,
                                         request.input.limits.ranks));
}

// Makes the order that was judged into as many copies as are to be run.
void replicate(const RunRequest& request, JudgedInput& judged) {
  auto replicas = run::replicas_of(judged.input, judged.check_options(), request.replicas);
  if (!replicas) throw CLI::ValidationError("--replicas", replicas.error());
  judged.input = std::move(replicas->input);
  judged.model.groups = std::move(replicas->options.groups);
  judged.model.modules.layers = std::move(replicas->options.modules.layers);
  run::list_hooked_reductions(judged.input.schedule, judged.check_options());
}

int run_replicas(const RunRequest& request, JudgedInput& judged, const run::Division& division,
                 run::Engine& engine) {
  // A fault of the order is told once, and not of each copy.
  if (!request.unchecked) {
    const run::CompletedModel one =
        run::complete_model(judged.check_options(), judged.input.schedule);
    const auto alone = verify(judged.input, one.options);
    if (const auto* why = std::get_if<NotVerified>(&alone)) {
      return refuse_unverified(judged, *why, request, one.options, engine);
    }
  }
  replicate(request, judged);
  const run::CompletedModel all =
      run::complete_model(judged.check_options(), judged.input.schedule);
  const auto predicted = prediction_of(request, judged, division);
  if (request.unchecked) {
    return run_through(admit_unchecked, run::run_unchecked, judged, all, predicted, request,
                       engine);
  }
  return run_through(verify, run::run, judged, all, predicted, request, engine);
}

int run_judged(const RunRequest& request, JudgedInput& judged) {
  const Input& input = judged.input;
  refuse_many_replicas(request, input);
  const run::Division division = division_of(request, input);
  if (request.launched != nullptr && request.launched->processes().size() != division.processes()) {
    return refuse_processes(request, division, input.source.name);
  }
  Model& model = judged.model;
  if (!request.plan->modules.empty()) run::fuse_gradients(model.modules);
  if (request.replicas == 1) {
    run::list_hooked_reductions(judged.input.schedule, judged.check_options());
  }
  const run::CompletedModel complete = run::complete_model(judged.check_options(), input.schedule);
  for (const Module& module : complete.options.modules.list) {
    if (const auto why = run::module_refusal(module)) {
      return tell_why_not(request, name_of(request.device), "no-verdict", input.source.name, *why,
                          nullptr, kFindings);
    }
  }
  std::optional<double> predicted;
  if (request.replicas == 1) predicted = prediction_of(request, judged, division);
  auto engine = engine_of(request);
  if (!engine) return fail(engine.error());
  if (request.replicas > 1) return run_replicas(request, judged, division, **engine);
  if (request.unchecked) {
    return run_through(admit_unchecked, run::run_unchecked, judged, complete, predicted, request,
                       **engine);
  }
  return run_through(verify, run::run, judged, complete, predicted, request, **engine);
}

// Without times there is no timeline to write and no prediction to hold against them.
void refuse_options(const RunRequest& request) {
  refuse_without_times(request, !request.timeline.empty(), "--output");
  refuse_without_times(request, request.predict, "--predict");
  const bool shares = request.transport.kind == TransportKind::InProcess;
  if (request.predict && request.replicas > 1 && shares) {
    throw CLI::ValidationError("--replicas", "nothing is predicted of replicas on one device");
  }
}

int run_file(const RunRequest& request) {
  refuse_options(request);
  auto judged = judged_input(request);
  return judged ? run_judged(request, *judged) : refuse(judged.error());
}

int run_in_process(const RunRequest& request) {
  if (request.transport.ranks_per_device > 1) {
    throw CLI::ValidationError("--ranks-per-device",
                               "all ranks are in one process: take --transport nccl or mpi");
  }
  return run_file(request);
}

int run_launched(RunRequest& request, Launched& launched, const std::function<int()>& command) {
  request.launched = &launched;
  request.options.processes = &launched.processes();
  request.options.ranks_per_process = request.transport.ranks_per_device;
  return launched.run(command);
}

int run_over_mpi(RunRequest& request) {
  if (request.device == Device::Cuda) {
    throw CLI::ValidationError("--transport",
                               "mpi moves the memory of processors: take --device "
                               "host");
  }
  if (request.options.graphs == Granularity::PerStep) {
    throw CLI::ValidationError("--transport",
                               "a host waits for what another process sends, and no graph can hold "
                               "that: take --graphs per-action");
  }
  request.device = Device::Host;
  auto launched = Launched::join(request.transport);
  if (!launched) return fail(launched.error());
  return run_launched(request, *launched, [&] { return run_file(request); });
}

// Refuses what NCCL cannot do.
void refuse_for_nccl(const RunRequest& request, const Model& model) {
  if (request.device == Device::Host) {
    throw CLI::ValidationError("--transport",
                               "nccl moves the memory of CUDA devices: take --device cuda");
  }
  if (model.environment.buffered()) {
    throw CLI::ValidationError("--transfers",
                               "a send of nccl may wait for its receive: take --transfers "
                               "rendezvous, or leave it out");
  }
}

// capo makes the processes of itself, as many as the ranks need, unless mpirun has made them.
int run_over_nccl(RunRequest& request) {
  refuse_options(request);
  auto messages = messages_of_nccl();
  if (!messages) return fail(messages.error());
  request.options.between = {
      .name = "nccl", .make = *messages, .can_be_captured = true, .on_device = true};
  if (launched_by_mpi()) {
    auto launched = Launched::join(request.transport);
    if (!launched) return fail(launched.error());
    return run_launched(request, *launched, [&] {
      auto judged = judged_input(request);
      if (!judged) return refuse(judged.error());
      refuse_for_nccl(request, judged->model);
      request.device = Device::Cuda;
      return run_judged(request, *judged);
    });
  }
  auto judged = judged_input(request);
  if (!judged) return refuse(judged.error());
  refuse_for_nccl(request, judged->model);
  request.device = Device::Cuda;
  auto launched =
      Launched::spawn(request.transport, division_of(request, judged->input).processes());
  if (!launched) return fail(launched.error());
  return run_launched(request, *launched, [&] { return run_judged(request, *judged); });
}

}  // namespace

Run add_run(CLI::App& command) {
  command.footer("Example: capo run --order \"[1,1,-1,-1.5,-1,-1.5]\"");
  auto request = std::make_shared<RunRequest>();
  request->input.add_to(command);
  request->input.add_rank_to(command);
  request->environment.add_to(command);
  request->plan.emplace().add_to(command);
  request->fuse.add_to(command);
  request->fuse.is_planned = true;
  command.add_option("--replay", request->replay,
                     "The order that is replayed, where it is not the order of capture");
  add_device_option(command, request->device);
  add_choice(command, "--graphs", request->options.graphs,
             {{"per-action", Granularity::PerAction}, {"per-step", Granularity::PerStep}},
             "What one graph holds: per-action (one F, B or W) or per-step (all of it)");
  command
      .add_option("--replays", request->options.replays,
                  "How often, with new inputs and sizes each time; 0: eagerly alone")
      ->check(CLI::Range(0U, 1'000'000U))
      ->capture_default_str();
  command
      .add_option("--replicas", request->replicas,
                  "Copies of the order that train on data of their own and reduce together")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command.add_option("--seed", request->options.seed, "Of all numbers that are drawn")
      ->capture_default_str();
  request->options.sizes = run::SizeKind::Random;
  add_choice(command, "--sizes", request->options.sizes,
             words_of({run::SizeKind::Balanced, run::SizeKind::Zipf, run::SizeKind::Random}),
             "Rows of each group: balanced, zipf or random (which leaves rows unused)");
  command.add_flag("--unchecked", request->unchecked,
                   "Run what is rejected for buffers, streams, replays, gradients or captures");
  command.add_flag("--no-poison", request->no_poison,
                   "Leave memory as it is when its last reader is over");
  add_choice(
      command, "--float64", request->options.float64,
      {{"none", run::Float64::LeftOut},
       {"sampled", run::Float64::Sampled},
       {"first", run::Float64::FirstReplay},
       {"all", run::Float64::EveryReplay}},
      "What eager execution is held against float64 in: none, sampled (a sample of the first "
      "replay), first (all of the first replay) or all (replays)");
  command
      .add_option("--float64-samples", request->options.float64_samples,
                  "Rows of each microbatch, and columns of each weight, that sampled compares")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  command
      .add_option("--float64-limit", request->options.float64_limit,
                  "Multiply-adds that this may take; a run that needs more is refused")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_flag("--predict", request->predict,
                   "Simulate the step with the costs of the model file, beside what was measured");
  command
      .add_option("--warm-up", request->warm_up,
                  "Seconds in which the step is replayed before each replay that counts, since a "
                  "device's clock goes down under load; the times of a replay are the mean over it "
                  "and the second half of these; default: 1 with --predict on a device, else 0")
      ->check(CLI::Range(0.0, 3600.0));
  request->transport.add_to(command, "mpirun -n RANKS capo run ...");
  request->transport.add_ranks_to(command);
  add_format(command, request->format);
  command.add_option("-o,--output", request->timeline,
                     "Write the measured timeline here as a Chrome trace");
  return [request] {
    request->options.poison = request->no_poison ? run::Poison::Off : run::Poison::On;
    switch (request->transport.kind) {
      case TransportKind::InProcess:
        return run_in_process(*request);
      case TransportKind::Mpi:
        return run_over_mpi(*request);
      case TransportKind::Nccl:
        return run_over_nccl(*request);
    }
    CAPO_UNREACHABLE();
  };
}

}  // namespace capo::cli
