// `capo measure --model model.json`: what each kind of task takes on this machine, as a model file
// that the simulator reads. With --trace it reads what torch measured (measure_trace.cpp), with
// --transport it measures messages between two processes, each with a device of its own, and what
// groups of several members exchange and reduce.

#include "run/measure.h"
#include "cli/commands/commands.h"
#include "cli/options/command_error.h"
#include "cli/options/device.h"
#include "cli/options/environment_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/launched.h"
#include "cli/options/numbers.h"
#include "cli/options/progress.h"
#include "core/model/derive.h"
#include "core/text/model_printer.h"
#include "run/modules/layer.h"
#include "run/processes/between_processes.h"
#include "run/setup/step_layers.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

constexpr int kRounds = 3;  // of all modules, of which medians are taken
// Each of the rounds finds a clock that falls and rises at another time, and warms up for less than
// a run does.
constexpr double kWarmUpOfRound = 0.6;
// A device gets hotter for seconds, and slower. Steps run on hot ones.
constexpr double kHeating = 5;

struct MeasureRequest {
  std::string model;
  Device device = Device::Auto;
  std::string output = "-";
  run::MeasureOptions options;
  std::vector<std::string> traces;  ///< of torch, to read instead; empty: none
  Limits limits;
  TransportRequest transport;
};

std::int64_t bytes_handed_on(const Module& module) {
  return *module.shape.tokens * *module.shape.hidden *
         run::bytes_of(module.dtype.value_or(DataType::Bf16));
}

// Bytes that one stage hands to the next; nullopt if modules differ in it.
std::optional<std::int64_t> message_bytes(const Model& model) {
  if (model.transfer.bytes) return model.transfer.bytes;
  std::optional<std::int64_t> bytes;
  for (const Module& module : model.modules.list) {
    const std::int64_t of_module = bytes_handed_on(module);
    if (bytes && *bytes != of_module) return std::nullopt;
    bytes = of_module;
  }
  return bytes;
}

std::string table_of(const MeasuredCosts& costs, const run::Engine& engine) {
  std::string out =
      fmt::format("measured on {} ({}), microseconds\n", engine.name(), engine.device());
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{:>10.1f}", *value) : fmt::format("{:>10}", "-");
  };
  const auto share = [](const std::optional<double>& value) {
    return value ? fmt::format("{:>10.2f}", *value) : fmt::format("{:>10}", "-");
  };
  out += fmt::format(
      "{:<20}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
      "module", "forward", "backward", "weight", "dispatch", "combine", "reduce", "autograd",
      "whole", "fuse", "beside", "rest", "quant F", "quant B");
  for (const auto& [name, cost] : costs.modules) {
    out += fmt::format("{:<20}{}{}{}{}{}{}{}{}{}{}{}{}{}\n", name, cell(cost.forward),
                       cell(cost.backward), cell(cost.weight), cell(cost.dispatch),
                       cell(cost.combine), cell(cost.reduce), cell(cost.autograd), cell(cost.whole),
                       share(cost.fuse), share(cost.beside), share(cost.rest),
                       cell(cost.quantize_forward), cell(cost.quantize_backward));
  }
  if (costs.transfer) {
    out += fmt::format("transfer of {} bytes: latency {:.1f}", *costs.transfer->bytes,
                       *costs.transfer->latency);
    if (costs.transfer->bandwidth) {
      out += fmt::format(", {:.0f} bytes a microsecond", *costs.transfer->bandwidth);
    }
    if (costs.transfer->crowded) {
      out +=
          fmt::format(", {:.2f} times as long while its sender computes", *costs.transfer->crowded);
    }
    if (costs.transfer->slowdown) {
      out += fmt::format(", {:.2f} times as long for what computes beside it",
                         *costs.transfer->slowdown);
    }
    if (costs.transfer->ahead) {
      out += fmt::format(", {} bytes ahead of its receive", *costs.transfer->ahead);
    }
    out += '\n';
  }
  for (std::size_t rank = 1; rank < costs.paces.size(); ++rank) {
    out += fmt::format("the device of rank {} takes {:.3f} times as long to compute\n", rank,
                       costs.paces[rank]);
  }
  return out;
}

int refuse_failure(const run::RunFailure& failure) {
  print_stderr(fmt::format("error: {}\n", failure.message));
  if (!failure.help.empty()) print_stderr(fmt::format("  help: {}\n", failure.help));
  return failure.kind == run::RunFailure::Kind::Broken ? kEnvironment : kFindings;
}

run::MeasureOptions options_for(const MeasureRequest& request, const run::Engine& engine) {
  run::MeasureOptions options = request.options;
  options.warm_up = on_device(engine) ? kWarmUpOfRound : 0;
  return options;
}

// Two ranks take twice the memory, which a device may not have.
std::string unmeasured(const Module& module, std::string_view what,
                       const run::RunFailure& failure) {
  return fmt::format("note: {} of module `{}` is not measured: {}\n", what, module.name,
                     failure.message);
}

// The members of the largest group that performs one of these actions; 1 if there is none.
std::int32_t members_of(const Model& model, bool (*performs)(const CollectiveGroup&)) {
  std::size_t members = 1;
  for (const CollectiveGroup& group : model.groups) {
    if (performs(group)) members = std::max(members, group.members.size());
  }
  return static_cast<std::int32_t>(members);
}

std::int32_t exchanging_members(const Model& model) {
  return members_of(model, [](const CollectiveGroup& group) { return group.exchanges(); });
}
std::int32_t reducing_members(const Model& model) {
  return members_of(
      model, [](const CollectiveGroup& group) { return group.performs(Kind::ReduceGradient); });
}

// Two processes measure this together.
struct MeasuredBetween {
  TransferCost transfer;
  std::map<std::string, ModuleCost> modules;  ///< dispatch, combine and reduce, where they are
  std::vector<double> paces;                  ///< of both devices; empty: they were not compared
};

using ModuleCosts = std::map<std::string, ModuleCost>;

using Notes = std::vector<std::string>;

// Standard error has a line about progress meanwhile, so that notes come when that has gone.
void print_all(const Notes& notes) {
  for (const std::string& note : notes) print_stderr(note);
}

// The medians over some rounds of all modules. Each time has an engine of its own, which gives its
// memory back at its end.
std::variant<ModuleCosts, Error, run::RunFailure> medians_of_modules(const MeasureRequest& request,
                                                                     const Model& model,
                                                                     int ordinal, bool exchanges,
                                                                     Notes& notes) {
  // Each is measured by itself and beside another rank.
  Progress progress("measure", 2 * kRounds * model.modules.list.size());
  std::uint64_t done = 0;
  std::map<std::string, std::vector<ModuleCost>> measured;
  for (int round = 0; round < kRounds; ++round) {
    for (const Module& module : model.modules.list) {
      auto engine = engine_for(request.device, ordinal);
      if (!engine) return engine.error();
      // A run leaves that room, too.
      if (request.transport.kind == TransportKind::Nccl) (*engine)->leave_room_for_exchanges();
      run::MeasureOptions options = options_for(request, **engine);
      if (exchanges) options.exchanges = run::Exchanges::Measured;
      const bool first = round == 0 && &module == &model.modules.list.front();
      if (first && options.warm_up > 0) options.heating = kHeating;
      const auto cost = run::measure_module(**engine, module, options);
      if (!cost) return cost.error();
      measured[module.name].push_back(*cost);
      progress.set(++done);
      engine->reset();
      auto of_two = engine_for(request.device, ordinal);
      if (!of_two) return of_two.error();
      const auto beside = run::measure_beside(**of_two, module, options);
      if (beside) measured[module.name].back().beside = *beside;
      if (!beside && !on_device(**of_two)) return beside.error();
      if (!beside && round == 0) notes.push_back(unmeasured(module, "beside", beside.error()));
      progress.set(++done);
    }
  }
  ModuleCosts costs;
  for (const auto& [name, of_rounds] : measured) costs[name] = run::median_of(of_rounds);
  return costs;
}

std::variant<ModuleCosts, Error, run::RunFailure> costs_of_modules(const MeasureRequest& request,
                                                                   const Model& model, int ordinal,
                                                                   bool exchanges) {
  Notes notes;
  auto costs = medians_of_modules(request, model, ordinal, exchanges, notes);
  print_all(notes);
  return costs;
}

// Measures messages between two ranks of this process, which are copies.
std::variant<TransferCost, Error, run::RunFailure> cost_of_copies(const MeasureRequest& request,
                                                                  const Module& module,
                                                                  run::Engine& engine,
                                                                  std::int64_t bytes,
                                                                  Notes& notes) {
  const Progress progress("measure messages");
  const auto transfer = run::measure_transfer(engine, bytes);
  if (!transfer) return transfer.error();
  const auto hop = run::measure_hop(engine, module, options_for(request, engine));
  if (!hop && !on_device(engine)) return hop.error();
  if (!hop) notes.push_back(unmeasured(module, "the way from task to task", hop.error()));
  if (!hop || !*hop) return *transfer;
  return run::with_hop(*transfer, **hop, bytes_handed_on(module));
}

// Writes what was measured. Without `between` messages are copies, and are measured here.
int write_measured(const MeasureRequest& request, const ModelFile& file, int ordinal,
                   ModuleCosts modules, const std::optional<MeasuredBetween>& between) {
  MeasuredCosts costs{.modules = std::move(modules), .transfer = {}, .paces = {}};
  if (between) {
    costs.transfer = between->transfer;
    costs.paces = between->paces;
    for (const auto& [name, cost] : between->modules) {
      ModuleCost& of = costs.modules[name];
      if (cost.dispatch) of.dispatch = cost.dispatch;
      if (cost.combine) of.combine = cost.combine;
      of.reduce = cost.reduce;
    }
  }
  auto engine = engine_for(request.device, ordinal);
  if (!engine) return fail(engine.error());
  if (const auto bytes = message_bytes(file.model); bytes && !between) {
    Notes notes;
    const auto cost =
        cost_of_copies(request, file.model.modules.list.front(), **engine, *bytes, notes);
    print_all(notes);
    if (const auto* error = std::get_if<Error>(&cost)) return fail(*error);
    if (const auto* failure = std::get_if<run::RunFailure>(&cost)) return refuse_failure(*failure);
    costs.transfer = std::get<TransferCost>(cost);
  }
  const std::string text = with_costs(file.source.text, costs);
  if (const auto failed = write_output(request.output, text)) return fail(*failed);
  if (request.output == "-") return kAccepted;
  return exit_code_after(write_stdout(table_of(costs, **engine)));
}

int measure_alone(const MeasureRequest& request, const ModelFile& file) {
  // Exchanges that nobody declares are not run.
  auto modules = costs_of_modules(request, file.model, 0, declares_exchanges(file.model));
  if (const auto* error = std::get_if<Error>(&modules)) return fail(*error);
  if (const auto* failure = std::get_if<run::RunFailure>(&modules)) return refuse_failure(*failure);
  return write_measured(request, file, 0, std::get<0>(std::move(modules)), {});
}

// Ends the command in both processes alike, or all of them if this one alone knows of the failure.
int end_for(Launched& launched, const run::RunFailure& failure) {
  if (failure.kind == run::RunFailure::Kind::Refused) {
    return launched.reports() ? refuse_failure(failure) : kFindings;
  }
  launched.end_all_for(
      {.kind = ErrorKind::Environment, .message = failure.message, .help = failure.help});
}

// Measures what the groups of a module exchange and reduce. An engine gives all of its memory back
// at its end.
Result<ModuleCost, run::RunFailure> cost_between(Launched& launched, const MeasureRequest& request,
                                                 const Model& model, const Module& module,
                                                 const run::BetweenFactory& messages, int ordinal) {
  ModuleCost cost;
  const auto engine = [&] {
    auto made = engine_for(request.device, ordinal);
    if (!made) launched.end_all_for(made.error());
    return *std::move(made);
  };
  if (const std::int32_t members = exchanging_members(model); members > 1) {
    const run::LayerShape shape = run::declared_shape(module);
    const auto exchange = run::measure_exchanges_between(
        *engine(), launched.processes(), messages,
        {.count = shape.tokens,
         .row_bytes = run::output_columns(shape) * run::bytes_of(shape.type),
         .members = members});
    if (!exchange) return exchange.error();
    cost.dispatch = exchange->dispatch;
    cost.combine = exchange->combine;
  }
  if (const std::int32_t members = reducing_members(model); members > 1) {
    const auto of = engine();
    const auto reduce = run::measure_reduction_between({*of, module, options_for(request, *of)},
                                                       launched.processes(), messages, members);
    if (!reduce) return reduce.error();
    cost.reduce = *reduce;
  }
  return cost;
}

// Measures the modules in one process, or in each on a device of its own at the same time, as a
// step uses them: then `between` gets how much longer the second device takes.
std::variant<ModuleCosts, int> computed_between(Launched& launched, const MeasureRequest& request,
                                                const ModelFile& file, int ordinal,
                                                MeasuredBetween& between) {
  const bool both = request.transport.kind == TransportKind::Nccl;
  if (!both && !launched.reports()) return ModuleCosts();
  const bool exchanges = declares_exchanges(file.model) && exchanging_members(file.model) == 1;
  auto modules = costs_of_modules(request, file.model, ordinal, exchanges);
  if (const auto* error = std::get_if<Error>(&modules)) launched.end_all_for(*error);
  if (const auto* why = std::get_if<run::RunFailure>(&modules)) return end_for(launched, *why);
  auto costs = std::get<ModuleCosts>(std::move(modules));
  if (!both) return costs;
  constexpr auto kApart = std::chrono::minutes(2);  // by which one may be done before the other
  const double first = run::computed_in(costs);
  const auto all = launched.processes().gather(fmt::format("{}", first), kApart);
  if (!launched.reports()) return costs;
  between.paces = {1};
  for (std::size_t process = 1; process < all.size(); ++process) {
    const auto other = all[process] ? finite_number(*all[process]) : std::nullopt;
    if (!other) {
      launched.end_all_for(
          {.kind = ErrorKind::Environment,
           .message = fmt::format("process {} does not say what its device takes", process)});
    }
    const auto pace = run::pace_of_process(process, first, *other);
    if (!pace) launched.end_all_for(pace.error());
    between.paces.push_back(*pace);
  }
  return costs;
}

// Both processes measure messages between them; of processors, which are alike, the first measures
// the modules.
int measure_in(Launched& launched, MeasureRequest& request, const ModelFile& file,
               const run::BetweenFactory& messages, std::int64_t bytes) {
  const std::int32_t processes = launched.processes().size();
  if (processes != 2) {
    return fail(Error{.kind = ErrorKind::Environment,
                      .message = fmt::format("messages are measured between 2 processes, and {} "
                                             "were launched",
                                             processes)});
  }
  int ordinal = 0;  // of the CUDA device
  if (request.transport.kind == TransportKind::Nccl) {
    const auto device = launched.device_or_end();
    if (!device) return fail(device.error());
    ordinal = *device;
  }
  auto engine = engine_for(request.device, ordinal);
  if (!engine) launched.end_all_for(engine.error());
  auto cost = run::measure_transfer_between(**engine, launched.processes(), messages, bytes);
  if (!cost) return fail(cost.error());
  engine->reset();
  MeasuredBetween between{.transfer = *cost, .modules = {}};
  if (request.transport.kind == TransportKind::Nccl) {
    auto beside = engine_for(request.device, ordinal);
    if (!beside) launched.end_all_for(beside.error());
    const auto failed = run::measure_beside_computation(
        {**beside, file.model.modules.list.front(), options_for(request, **beside)},
        launched.processes(), messages, between.transfer);
    if (failed) return end_for(launched, *failed);
  }
  for (const Module& module : file.model.modules.list) {
    const auto of = cost_between(launched, request, file.model, module, messages, ordinal);
    if (!of) return end_for(launched, of.error());
    between.modules[module.name] = *of;
  }
  auto modules = computed_between(launched, request, file, ordinal, between);
  if (const int* code = std::get_if<int>(&modules)) return *code;
  if (!launched.reports()) return kAccepted;
  return write_measured(request, file, ordinal, std::get<ModuleCosts>(std::move(modules)), between);
}

int measure_apart(MeasureRequest& request, const ModelFile& file) {
  const bool nccl = request.transport.kind == TransportKind::Nccl;
  if (request.device == (nccl ? Device::Host : Device::Cuda)) {
    throw CLI::ValidationError("--transport", nccl ? "nccl moves the memory of CUDA devices: take "
                                                     "--device cuda"
                                                   : "mpi moves the memory of processors: take "
                                                     "--device host");
  }
  request.device = nccl ? Device::Cuda : Device::Host;
  const auto bytes = message_bytes(file.model);
  if (!bytes) {
    throw CLI::ValidationError("--transport",
                               "modules differ in what a stage hands on: say \"transfer\": "
                               "{\"bytes\": ...} in the model file");
  }
  auto messages = nccl ? messages_of_nccl() : run::BetweenFactory(run::between_processes);
  if (!messages) return fail(messages.error());
  auto launched = nccl && !launched_by_mpi() ? Launched::spawn(request.transport, 2)
                                             : Launched::join(request.transport);
  if (!launched) return fail(launched.error());
  return launched->run([&] { return measure_in(*launched, request, file, *messages, *bytes); });
}

int measure(MeasureRequest& request) {
  const bool apart = request.transport.kind != TransportKind::InProcess;
  if (!request.traces.empty() && apart) {
    throw CLI::ValidationError("--transport", "is for what is measured here, and not for a trace");
  }
  if (!request.traces.empty()) {
    return measure_traces(request.traces, request.output, request.limits);
  }
  if (request.model.empty()) {
    throw CLI::RequiredError("--model or --trace");
  }
  auto file = read_model_file(request.model, request.limits);
  if (!file) return refuse(file.error());
  derive(file->model);
  if (file->model.modules.list.empty()) {
    throw CLI::ValidationError("--model", "declares no modules, and they are what is measured");
  }
  for (const Module& module : file->model.modules.list) {
    if (const auto why = run::module_refusal(module)) {
      print_stderr(fmt::format("error: {}\n", *why));
      return kFindings;
    }
  }
  return apart ? measure_apart(request, *file) : measure_alone(request, *file);
}

}  // namespace

Run add_measure(CLI::App& command) {
  command.footer(
      "On a terminal a line on standard error says how many of its measurements are done.\n\n"
      "Example: capo measure --model model.json -o costs.json && capo simulate step.order --model "
      "costs.json");
  auto request = std::make_shared<MeasureRequest>();
  auto* model =
      command.add_option("--model", request->model, "The modules, with their shapes, as JSON");
  command
      .add_option("--trace", request->traces,
                  "A trace of torch.profiler instead: writes --cost flags with the medians of its "
                  "actions; again for each rank")
      ->excludes(model);
  command.add_option("--max-bytes", request->limits.bytes, "Bytes of one file")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0xffffffff}))
      ->capture_default_str();
  add_device_option(command, request->device);
  request->transport.add_to(command, "mpirun -n 2 capo measure ...");
  command
      .add_option("--microbatches", request->options.microbatches,
                  "Of the step that is measured; times are medians over all but the first")
      ->check(CLI::Range(2U, 1000U))
      ->capture_default_str();
  command
      .add_option("-o,--output", request->output,
                  "Where to write the model with its costs; - is standard output")
      ->capture_default_str();
  return [request] { return measure(*request); };
}

}  // namespace capo::cli
