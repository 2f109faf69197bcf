#include "cli/options/environment_options.h"

#include "cli/options/choice.h"
#include "cli/options/files.h"
#include "core/base/nearest.h"
#include "core/graph/lowered.h"
#include "core/model/derive.h"
#include "core/model/environment.h"
#include "core/model/model.h"
#include "core/model/ready_models.h"
#include "core/order/declare.h"
#include "core/text/model_reader.h"
#include "core/text/scan.h"
#include "core/text/stated_transfers.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace capo::cli {

namespace {

std::uint64_t largest_stage(const Schedule& schedule) {
  std::int32_t largest = 0;
  for (const RankOrder& rank : schedule.ranks) {
    for (const std::int32_t stage : rank.stages) largest = std::max(largest, stage);
  }
  return static_cast<std::uint64_t>(largest);
}

// The ready configuration of that name.
const ModelConfiguration& configuration_named(const std::string& name) {
  if (const ReadyModel* ready = ready_model_named(name)) return ready->configuration;
  std::vector<std::string_view> names;
  for (const ReadyModel& model : ready_models()) names.push_back(model.name);
  throw CLI::ValidationError(
      "--model-config",
      fmt::format("there is no model `{}`; {}", name,
                  did_you_mean(name, names,
                               "`capo model --list` lists them, and --model takes a "
                               "file with a `configuration`")));
}

// A word that names no topology is read as a file.
Error with_names(Error error) {
  if (error.help.empty()) {
    error.help =
        "--topology takes independent, chain, loop, v, bidirectional, or a JSON file with stages";
  }
  return error;
}

}  // namespace

void EnvironmentOptions::add_to(CLI::App& app) {
  const std::string group = "Environment (what the verdict is relative to)";
  app.add_option(
         "--topology", topology,
         "How chunks follow each other: independent, chain, loop, v, bidirectional, or a JSON file "
         "with the stages of each rank; default: as the input states")
      ->group(group);
  add_choice(app, "--comm", communicators,
             words_of({Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge,
                       Communicators::PerDirection, Communicators::LazyHybrid}),
             "Which transfers of a rank queue up: per-rank, per-pair or per-edge; if not declared, "
             "check judges an order under each, and what runs or draws one takes per-rank; "
             "per-direction: activations, and gradients, as PyTorch 2.14 has it on demand; "
             "lazy-hybrid: per pair, but groups of sends and receives on one for all ranks")
      ->group(group);
  add_choice(
      app, "--comm-init", comm_init, words_of({CommInit::Eager, CommInit::Lazy}),
      "When communicators are made: eager, before the step, or lazy, where a rank first uses "
      "one, and then all its members wait there for each other; default: eager")
      ->group(group);
  add_transfers(app, group);
  add_choice(app, "--p2p", p2p,
             words_of({MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}),
             "Transfers as Megatron calls them: batch, overlap or flush; default: as the order "
             "says or writes them, else as PyTorch adds them")
      ->group(group);
  app.add_flag("--ep-overlap,--overlap-moe-expert-parallel-comm", ep_overlap,
               "Megatron runs forward and backward of a step as one "
               "(overlap_moe_expert_parallel_comm)")
      ->group(group);
  app.add_option("--ep-slots", ep_slots,
                 "Slots of that overlap besides the usual: mtp, early-release, delayed-wgrad (the "
                 "last of orders by chunk; an order by layer says it itself)")
      ->delimiter(',')
      ->check(CLI::IsMember({"mtp", "early-release", "delayed-wgrad"}))
      ->group(group);
  app.add_flag(
         "--weight-stream,!--no-weight-stream",
         [this](std::int64_t times) { weight_stream = times > 0; },
         "Weight gradients run on a stream of their own, and nothing but a reduction waits for "
         "them; --no-weight-stream: on the stream of the other computations; if not declared, that "
         "is taken, and check warns where it would matter")
      ->group(group);
  app.add_option_function<std::string>(
         "--assume", [this](const std::string&) { assume_defaults = true; },
         "default: take per-rank, rendezvous and no weight stream if nothing is declared, and "
         "judge no other value")
      ->check(CLI::IsMember({"default"}))
      ->group(group);
  CLI::Option* file = app.add_option("--model", model,
                                     "What the order does not say, as JSON; see docs/model-json.md")
                          ->group(group);
  app.add_flag("--override", override_file,
               "Flags win where they say otherwise than the model file")
      ->needs(file)
      ->group(group);
  app.add_option("--model-config", model_config,
                 "The sizes of a published model, from which bytes of modules follow; `capo model "
                 "--list` lists the names")
      ->group(group);
}

void EnvironmentOptions::add_transfers(CLI::App& app, const std::string& group) {
  const auto refuse_others = [](const std::string& word) {
    if (transfers_stated(word)) return std::string();
    const std::string hint =
        did_you_mean(word, std::array<std::string_view, 2>{name_of(TransferMode::Rendezvous),
                                                           name_of(TransferMode::Buffered)});
    return fmt::format("{} is none of rendezvous, buffered, buffered:BYTES{}{}", shown(word),
                       hint.empty() ? "" : "; ", hint);
  };
  app.add_option_function<std::string>(
         "--transfers", [this](const std::string& word) { transfers = transfers_stated(word); },
         "Whether a send waits for its receive: rendezvous or buffered; if not declared, check "
         "judges an order under both, and what runs or draws one takes rendezvous; buffered:BYTES: "
         "it waits if its channel holds so much already")
      ->check(CLI::Validator(refuse_others, "{rendezvous,buffered,buffered:BYTES}"))
      ->group(group);
  app.add_option("--message-bytes", message_bytes,
                 "The size of one transfer, for --transfers buffered:BYTES; default: that of "
                 "`transfer` in the model file")
      ->check(CLI::PositiveNumber)
      ->group(group);
}

// A channel's bytes are counted in messages, so these need a size.
void EnvironmentOptions::size_messages(Model& declared) const {
  Environment& environment = declared.environment;
  merge(declared.transfer.bytes, message_bytes, "--message-bytes", on_conflict());
  if (!environment.channel_bytes) {
    if (message_bytes)
      throw CLI::ValidationError("--message-bytes", "is for --transfers buffered:BYTES");
    return;
  }
  environment.message_bytes = declared.transfer.bytes;
  if (environment.message_bytes.value_or(0) > 0) return;
  throw CLI::ValidationError(
      "--transfers", fmt::format("{} needs the size of a transfer: --message-bytes, or `transfer` "
                                 "with `bytes` in the model file",
                                 transfers_text(environment)));
}

void EnvironmentOptions::derive_modules(Model& declared) const {
  if (!model_config.empty() && declared.modules.list.empty()) {
    declared.modules.list = {{.name = "layer", .kind = ModuleKind::TransformerLayer}};
    declared.modules.layers = {{{0}}};
  }
  derive(declared);
}

Result<ModelFile, CommandError> read_model_file(const std::string& path, const Limits& limits) {
  auto source = read_source(path, limits.bytes);
  if (!source) {
    Error error = std::move(source.error());
    if (ready_model_named(path) != nullptr) {
      error.help = fmt::format("`capo model {} -o FILE` writes the file of that model", path);
    }
    return CommandError(std::move(error));
  }
  auto model = read_model(source->text, limits);
  if (model) return ModelFile{.source = *std::move(source), .model = *std::move(model)};
  return CommandError(RefusedInput{.source = *std::move(source), .refusal = model.error()});
}

Result<Model, CommandError> EnvironmentOptions::resolve(const Limits& limits) const {
  Model declared;
  if (!model.empty()) {
    auto file = read_model_file(model, limits);
    if (!file) return file.error();
    declared = std::move(file->model);
  }
  if (!model_config.empty()) {
    if (declared.configuration) {
      throw CLI::ValidationError("--model-config", "the model file has a `configuration` itself");
    }
    declared.configuration = configuration_named(model_config);
  }
  Environment& environment = declared.environment;
  merge(environment.communicators, communicators, "--comm", on_conflict());
  merge(environment.comm_init, comm_init, "--comm-init", on_conflict());
  if (transfers) {
    merge(environment.transfers, std::optional(transfers->mode), "--transfers", on_conflict());
    if (environment.channel_bytes && environment.channel_bytes != transfers->channel_bytes)
      refuse_contradiction("--transfers", on_conflict());
    environment.channel_bytes = transfers->channel_bytes;
  }
  size_messages(declared);
  merge(environment.p2p, p2p, "--p2p", on_conflict());
  environment.assume_defaults = assume_defaults;
  environment.ep_overlap = environment.ep_overlap || ep_overlap;
  for (const std::string& slot : ep_slots) {
    EpOverlap& slots = environment.ep_slots;
    (slot == "mtp"             ? slots.multi_token_prediction
     : slot == "early-release" ? slots.early_release
                               : slots.delayed_weights) = true;
  }
  if (!ep_slots.empty() && !environment.ep_overlap) {
    throw CLI::ValidationError("--ep-slots", "needs --ep-overlap, whose slots they are");
  }
  merge(environment.weight_stream, weight_stream, "--weight-stream", on_conflict());
  if (!overlaps_anyway) refuse_idle_overlap(declared);
  if (topology.empty()) return declared;

  const auto named = topology_named(topology);
  if (named && *named != Topology::Custom) {
    merge(declared.topology, named, "--topology", on_conflict());
    return declared;
  }
  auto source = read_source(topology, limits.bytes);
  if (!source) return CommandError(with_names(source.error()));
  auto stages = read_topology(source->text, limits);
  if (!stages) {
    return CommandError(RefusedInput{.source = *std::move(source), .refusal = stages.error()});
  }
  merge(declared.topology, std::optional(Topology::Custom), "--topology", on_conflict());
  if (!declared.stages.empty() && declared.stages != *stages) {
    refuse_contradiction("--topology", on_conflict());
  }
  declared.stages = std::move(*stages);
  return declared;
}

void EnvironmentOptions::refuse_idle_overlap(const Model& declared) const {
  if (declares_exchanges(declared)) return;
  if (ep_overlap && !declared.environment.p2p) {
    throw CLI::ValidationError("--ep-overlap",
                               "needs --p2p, or a model file with a group that exchanges tokens");
  }
  if (!ep_slots.empty()) {
    throw CLI::ValidationError("--ep-slots",
                               "needs a model file with a group that exchanges tokens: without "
                               "exchanges no layer is taken apart");
  }
}

std::optional<Misfit> EnvironmentOptions::place(Schedule& schedule, const Model& declared,
                                                const Limits& limits) const {
  if (auto why = misfit_of_groups(declared.groups, schedule.ranks.size()))
    return Misfit{"--model", std::move(*why)};
  if (auto why = misfit_of_amax_group(declared.environment, schedule.ranks.size()))
    return Misfit{"--model", std::move(*why)};
  const char* flag = topology.empty() ? "--model" : "--topology";
  if (declared.topology) {
    auto why = declare_topology(schedule, *declared.topology, declared.stages);
    if (why) return Misfit{flag, std::move(*why)};
    if (largest_stage(schedule) > limits.counts)
      return Misfit{flag, fmt::format("makes a stage above {}", limits.counts), true};
  }
  if (auto why = declare_layers(schedule, declared.modules.layers)) {
    return Misfit{"--model", std::move(*why)};
  }
  if (auto unused = useless_flag(schedule)) return unused;
  return std::nullopt;
}

// Refuses a flag that the input has no use for, since it would be ignored in silence. A model file
// may state more than one input needs.
std::optional<Misfit> EnvironmentOptions::useless_flag(const Schedule& schedule) const {
  if (p2p && has_transfers(schedule)) {
    return Misfit{"--p2p", "the order writes its transfers itself"};
  }
  if (schedule.topology != Topology::Independent) return std::nullopt;
  const char* flag = p2p               ? "--p2p"
                     : assume_defaults ? "--assume"
                     : communicators   ? "--comm"
                     : comm_init       ? "--comm-init"
                     : transfers       ? "--transfers"
                                       : nullptr;
  if (flag == nullptr || !model.empty()) return std::nullopt;
  return Misfit{flag,
                "the chunks are not wired to each other, so nobody communicates; --topology "
                "wires them"};
}

void refuse_contradiction(const char* flag, OnConflict on_conflict) {
  if (on_conflict == OnConflict::TakeFlag) return;
  throw CLI::ValidationError(
      flag, "contradicts what the model file states; with --override the flag wins");
}

}  // namespace capo::cli
