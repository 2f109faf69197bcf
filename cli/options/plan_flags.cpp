#include "cli/options/environment_options.h"

#include "cli/options/choice.h"
#include "cli/options/input_options.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/frameworks/te/version.h"
#include "core/text/number.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace capo::cli {

namespace {

// The texts between the commas; an empty one counts too.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t comma = text.find(','); comma != std::string_view::npos;
       comma = text.find(',')) {
    words.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  words.push_back(text);
  return words;
}

Aliases aliases_of(const std::string& text) {
  Aliases aliases;
  if (text == "none") return aliases;
  for (const std::string_view word : split(text)) {
    bool Aliases::*const operand = word == "input"         ? &Aliases::input
                                   : word == "grad-output" ? &Aliases::grad_output
                                                           : nullptr;
    if (operand == nullptr) {
      throw CLI::ValidationError(
          "--alias", fmt::format("{} is no operand; take input, grad-output or both, or none alone",
                                 shown(word)));
    }
    if (aliases.*operand) {
      throw CLI::ValidationError("--alias", fmt::format("names {} twice", word));
    }
    aliases.*operand = true;
  }
  return aliases;
}

std::vector<ModuleKind> modules_of(const std::string& text) {
  std::array<std::string_view, kModuleKinds.size()> names;
  std::transform(kModuleKinds.begin(), kModuleKinds.end(), names.begin(),
                 [](ModuleKind kind) { return name_of(kind); });
  std::vector<ModuleKind> kinds;
  for (const std::string_view word : split(text)) {
    const auto kind = module_kind_named(word);
    if (!kind) {
      const std::string all = fmt::format("there are {}", fmt::join(names, ", "));
      throw CLI::ValidationError("--modules",
                                 fmt::format("there is no module kind {}; {}", shown(word),
                                             did_you_mean(word, names, all)));
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

// "2.19", "2.20", with what its passes before capture do.
Words<bool> warm_up_by_release() {
  Words<bool> releases;
  for (const te::Version& version : te::kVersions)
    releases.push_back({std::string(version.release), version.warm_up_keeps_outputs});
  return releases;
}

std::string chunks_of(std::size_t rank, std::int32_t chunks) {
  return fmt::format("rank {} has {}", rank, counted(chunks, "chunk"));
}

}  // namespace

void PlanFlags::add_to(CLI::App& app) {
  const std::string group = "Plan (buffers, graphs and gradients)";
  add_choice(
      app, "--plan", kind, words_of({PlanKind::Te, PlanKind::Safe, PlanKind::McoreLocal}),
      "Contract buffers: te (TransformerEngine's own reuse), mcore-local (that of Megatron's local "
      "graphs) or safe (shared only where nobody can be hurt); default: none, and nothing is said "
      "of buffers")
      ->group(group);
  add_choice(app, "--te-version", warm_up_keeps_outputs, warm_up_by_release(),
             "Whose plan te is: the passes before capture let go of outputs at their end up to "
             "2.19, which the budget notices, and at their backwards from 2.20 on (default)")
      ->group(group);
  app.add_option_function<std::string>(
         "--alias", [this](const std::string& list) { aliases = aliases_of(list); },
         "Which operands of a weight gradient are the static buffers themselves, for orders "
         "without declared modules: input, grad-output, both with a comma, or none")
      ->group(group);
  app.add_option_function<std::string>(
         "--modules", [this](const std::string& list) { modules = modules_of(list); },
         "What chunks are made of: a kind for all of them, or with commas one for each, such as "
         "linear,grouped-mlp")
      ->group(group);
  app.add_flag("--paged-stash", paged_stash,
               "Each graph also reloads what the graph captured behind it reads (moe_paged_stash), "
               "so that a replay has to follow the capture entry by entry")
      ->group(group);
  add_choice(app, "--possible", possible_is_error, {{"error", true}, {"warn", false}},
             "Hazards that depend on which block PyTorch's allocator hands out: error (default) or "
             "warn")
      ->group(group);
  app.add_option_function<std::string>(
         "--budget",
         [this](const std::string& text) {
           const auto size = read_size(text);
           if (!size) throw CLI::ValidationError("--budget", size.error());
           budget = *size;
         },
         "Memory of a rank that the plan must keep to, such as 80GiB")
      ->group(group);
  app.add_option_function<std::string>(
         "--model-chunks",
         [this](const std::string& list) { model_chunks = number_list(list, "--model-chunks", 1); },
         "Of an order whose chunks are layers: how many make each chunk of the model, such as 1,2; "
         "an order that Megatron made says it itself")
      ->group(group);
  const CLI::Range buffers(std::uint64_t{1}, std::uint64_t{0xfffffffe});
  app.add_option("--max-buffers", max_buffers, "Buffers of a plan; beyond it there is no verdict")
      ->check(buffers)
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-unasked-buffers", max_unasked_buffers,
                 "Buffers up to which TransformerEngine's plan is looked at where none is declared")
      ->check(buffers)
      ->capture_default_str()
      ->group(group);
}

void PlanFlags::merge_into(Model& declared, OnConflict on_conflict) const {
  PlanOptions& plan = declared.plan;
  plan.max_buffers = max_buffers;
  plan.max_unasked_buffers = max_unasked_buffers;
  merge(plan.kind, kind, kind == PlanKind::Given ? "--plan-in" : "--plan", on_conflict);
  merge(plan.aliases, aliases, "--alias", on_conflict);
  merge(plan.budget, budget, "--budget", on_conflict);
  plan.paged_stash = plan.paged_stash || paged_stash;
  if (!model_chunks.empty()) {
    if (!plan.model_chunks.empty() && plan.model_chunks != model_chunks) {
      refuse_contradiction("--model-chunks", on_conflict);
    }
    plan.model_chunks = model_chunks;
  }
  if (budget && !plan.kind) {
    throw CLI::ValidationError("--budget",
                               "needs --plan: without one there is nothing to hold to it");
  }
  if (possible_is_error && !(plan.kind && is_a_frameworks(*plan.kind))) {
    throw CLI::ValidationError(
        "--possible", "needs --plan te or mcore-local: nothing else depends on the allocator");
  }
  plan.possible_is_error = possible_is_error.value_or(true);
  if (warm_up_keeps_outputs && plan.kind != PlanKind::Te) {
    throw CLI::ValidationError("--te-version", "needs --plan te: no other plan is that one's");
  }
  if (warm_up_keeps_outputs) {
    if (plan.warm_up_keeps_outputs && !*warm_up_keeps_outputs)
      refuse_contradiction("--te-version", on_conflict);
    plan.warm_up_keeps_outputs = *warm_up_keeps_outputs;
  }
  if (aliases && !plan.kind) {
    throw CLI::ValidationError("--alias", "needs --plan: without one no buffer is shared");
  }
  if (!model_chunks.empty() && plan.kind != PlanKind::Te && !declared.environment.p2p) {
    throw CLI::ValidationError("--model-chunks",
                               "needs --plan te, which frees what is sent chunk by chunk, or "
                               "--p2p, whose calls stand between chunks of the model");
  }
  if (modules.empty()) return;
  if (!declared.modules.list.empty() && on_conflict == OnConflict::Refuse) {
    throw CLI::ValidationError("--modules",
                               "the model file declares modules itself; its `layers` say which "
                               "layer is which, and with --override the flag replaces them");
  }
  declared.modules = modules_of_kinds(modules);
}

std::optional<Misfit> PlanFlags::misfit(const Schedule& schedule, const Model& declared) const {
  std::int64_t layers = 0;
  for (const std::int32_t count : declared.plan.model_chunks) layers += count;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::int32_t chunks = schedule.ranks[r].chunks - schedule.ranks[r].strays;
    if (chunks == 0) continue;
    if (modules.size() > 1 && std::cmp_not_equal(modules.size(), chunks)) {
      return Misfit{"--modules",
                    fmt::format("names {} kinds, but {}", modules.size(), chunks_of(r, chunks))};
    }
    if (layers != 0 && layers != chunks) {
      return Misfit{model_chunks.empty() ? "--model" : "--model-chunks",
                    fmt::format("model chunks add up to {}, but {}", layers, chunks_of(r, chunks))};
    }
  }
  return std::nullopt;
}

}  // namespace capo::cli
