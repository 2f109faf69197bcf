#include "cli/options/judged_input.h"

#include "core/base/plural.h"
#include "core/order/declare.h"
#include "core/order/fuse_weights.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

bool holds_only_actions(const Input& input) {
  return input.odd_entries.empty() && input.cell_faults.empty();
}

// The capture with the replay beside it, before anything that is declared of them.
Result<JudgedInput, CommandError> loaded(const InputRequest& request) {
  auto capture = load_input(request.input);
  if (!capture) return capture.error();
  if (request.replay.empty()) return JudgedInput{.input = *std::move(capture)};
  InputOptions of_replay = request.input;
  of_replay.file = request.replay;
  of_replay.order.reset();
  auto replay = load_input(of_replay);
  if (!replay) return replay.error();
  if (!holds_only_actions(*replay)) {
    return JudgedInput{.input = *std::move(replay), .replay_alone = true};
  }
  auto both = with_replay(*std::move(capture), *replay);
  if (!both) throw CLI::ValidationError("--replay", both.error());
  return JudgedInput{.input = *std::move(both)};
}

// Whatever neither a flag nor the model file declares is as the project has it.
void add_defaults(const Project& project, const InputRequest& request, Model& model) {
  Environment& environment = model.environment;
  if (!environment.assume_defaults) {
    if (!environment.communicators) environment.communicators = project.communicators;
    if (!environment.transfers) environment.transfers = project.transfers;
  }
  if (!request.plan) return;
  if (!request.plan->kind && !model.plan.kind) model.plan.kind = project.plan;
  const bool no_modules = request.plan->modules.empty() && model.modules.layers.empty();
  if (no_modules && !project.modules.empty()) model.modules = modules_of_kinds(project.modules);
}

// Makes one call of weight gradients that stand next to each other, as far as the flag says.
void fuse(const InputRequest& request, JudgedInput& judged) {
  if (request.fuse.most == 1) return;
  request.fuse.refuse_unmeant(request, judged.input.schedule, judged.model);
  const FusedWeights fused = fuse_weights(judged.input.schedule, request.fuse.most);
  judged.input.notes.push_back(
      fused.calls == 0
          ? "no two weight gradients of a chunk stand next to each other, so none are fused"
          : fmt::format("{} are fused into {}, each a composite",
                        counted(fused.gradients, "weight gradient"), counted(fused.calls, "call")));
}

Result<JudgedInput, CommandError> placed(const InputRequest& request, JudgedInput judged,
                                         Model declared) {
  judged.model = std::move(declared);
  std::vector<std::string>& notes = judged.input.notes;
  notes.insert(notes.end(), judged.model.notes.begin(), judged.model.notes.end());
  const auto misfit = place(request, judged.input.schedule, judged.model);
  if (!misfit) {
    fuse(request, judged);
    return judged;
  }
  if (!misfit->limit) throw CLI::ValidationError(misfit->flag, misfit->why);
  return CommandError(Error{.kind = ErrorKind::Limit,
                            .message = fmt::format("{} {}", misfit->flag, misfit->why),
                            .help = "raise the limit with --max-count"});
}

}  // namespace

CLI::Option* FuseFlag::add_to(CLI::App& app) {
  return app
      .add_option("--fuse-w", most,
                  "Weight gradients of a chunk that one call may take, where they stand next to "
                  "each other: their microbatches are added up before the gradient is written. 1 "
                  "leaves each by itself")
      ->check(CLI::Range(1, kMostFusedWeights))
      ->capture_default_str()
      ->group("Plan (buffers, graphs and gradients)");
}

void FuseFlag::refuse_unmeant(const InputRequest& request, const Schedule& schedule,
                              const Model& declared) const {
  const auto refuse_with = [](const char* why) { throw CLI::ValidationError("--fuse-w", why); };
  if (declared.plan.kind == PlanKind::Te) {
    refuse_with("is for --plan safe: TransformerEngine has a call for each weight gradient");
  }
  if (declared.plan.kind == PlanKind::McoreLocal) {
    refuse_with("is for --plan safe: Megatron's local graphs have no weight gradients apart");
  }
  if (request.plan && !declared.plan.kind && !is_planned) {
    refuse_with("needs --plan safe: without a plan nobody says what such a call holds");
  }
  if (declared.environment.p2p || schedule.p2p || has_exchanges(schedule)) {
    refuse_with(
        "is for orders whose layers stay together: Megatron's calls, and dispatches, stand "
        "between weight gradients");
  }
  const bool replays = std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                                   [](const RankOrder& rank) { return rank.replay.has_value(); });
  if (replays) refuse_with("is for orders that are replayed as they are captured");
}

CheckOptions JudgedInput::check_options() const {
  return check_options_of(model);
}

Result<Model, CommandError> declared_model(const InputRequest& request) {
  const auto project = request.projects->project_of(request.input.file, request.input.limits);
  if (!project) return project.error();
  EnvironmentOptions environment = request.environment;
  if (environment.model.empty()) environment.model = project->model;
  auto model = environment.resolve(request.input.limits);
  if (!model) return model;
  add_defaults(*project, request, *model);
  if (request.plan) request.plan->merge_into(*model, request.environment.on_conflict());
  request.environment.derive_modules(*model);
  return model;
}

std::optional<Misfit> place(const InputRequest& request, Schedule& schedule,
                            const Model& declared) {
  auto misfit = request.environment.place(schedule, declared, request.input.limits);
  if (!misfit && request.plan) misfit = request.plan->misfit(schedule, declared);
  if (misfit || declared.plan.model_chunks.empty()) return misfit;
  if (auto why = declare_model_chunks(schedule, declared.plan.model_chunks)) {
    return Misfit{"--model-chunks", std::move(*why)};
  }
  return std::nullopt;
}

Result<JudgedInput, CommandError> judged_input(const InputRequest& request) {
  auto judged = loaded(request);
  if (!judged || judged->replay_alone) return judged;
  auto declared = declared_model(request);
  if (!declared) return declared.error();
  return placed(request, *std::move(judged), *std::move(declared));
}

Result<JudgedInput, CommandError> judged_input(const InputRequest& request, const Model& declared) {
  auto judged = loaded(request);
  if (!judged || judged->replay_alone) return judged;
  return placed(request, *std::move(judged), declared);
}

}  // namespace capo::cli
