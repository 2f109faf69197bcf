#include "testing/truth/fixed_cases.h"

#include "core/base/assert.h"
#include "core/base/embedded_text.h"
#include "core/input/load.h"
#include "core/model/module_kinds.h"
#include "schedules/catalogue.h"
#include "schedules/generators.h"
#include "testing/truth/drawn_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace capo {

/// The lists of examples/te2376 by the stems of their files.
std::span<const EmbeddedText> te2376_lists();

}  // namespace capo

namespace capo::testing {

namespace {

constexpr std::array kBoth{Granularity::PerAction, Granularity::PerStep};
constexpr std::array<std::string_view, 4> kSoundLists{"order", "after", "fixed", "late"};
// The lists by layers have model chunks of one and of two layers.
constexpr std::array<std::string_view, 3> kListsOfLayers{"after", "fixed", "late"};
constexpr std::array kAliasing{ModuleKind::Linear, ModuleKind::GroupedLinear,
                               ModuleKind::LayerNormLinear};

Module fixed_module(ModuleKind kind) {
  Module module{.name = std::string(name_of(kind)), .kind = kind, .dtype = DataType::Bf16};
  module.shape = {.tokens = 16, .hidden = 16};
  if (is_attention(kind) || has_two_halves(kind)) {
    module.shape.heads = 4;
    module.shape.kv_heads = 2;
    module.shape.head_dim = 8;
    module.shape.sequence = 8;
  }
  if (!is_attention(kind)) module.shape.ffn = 16;
  if (is_made_of_modules(kind)) {
    module.shape.groups = 8;
    module.shape.top_k = 2;
  }
  if (is_grouped(kind)) {
    module.shape.groups = 8;
    module.splits = Splits::Device;
  }
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.grad_added_to_main_grad = true;
  return module;
}

TruthCase with_module(TruthCase made, ModuleKind kind, PlanKind plan) {
  Module module = fixed_module(kind);
  made.module = words_of(module);
  made.declared.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
  made.declared.plan.kind = plan;
  return made;
}

TruthCase te2376(std::string_view name) {
  const auto lists = te2376_lists();
  const auto found = std::find_if(lists.begin(), lists.end(),
                                  [&](const EmbeddedText& text) { return text.name == name; });
  CAPO_ASSERT(found != lists.end(), "examples/te2376 has this list");
  TruthCase made{.words = fmt::format("te2376/{}", name)};
  made.input =
      load(Source{.name = made.words, .text = std::string(found->text)}, {.form = TextForm::TeList})
          .value();
  return made;
}

std::vector<std::string> published_names() {
  std::vector<std::string> names;
  for (const schedules::Entry& entry : schedules::entries()) names.emplace_back(entry.name);
  for (const schedules::TorchClass each : schedules::kTorchClasses) {
    names.push_back(fmt::format("torch:{}", schedules::name_of(each)));
  }
  return names;
}

// On two ranks with four microbatches, and two chunks or a limit of memory where it asks for them.
TruthCase published_case(const std::string& name) {
  for (const std::optional<std::int32_t> chunks :
       {std::optional<std::int32_t>{}, std::optional<std::int32_t>{2}}) {
    schedules::Request request{.name = name, .ranks = 2, .microbatches = 4, .chunks = chunks};
    auto schedule = schedules::schedule_named(request);
    if (!schedule) {
      request.memory_limit = 4;
      schedule = schedules::schedule_named(request);
    }
    if (!schedule) continue;
    return {.words = fmt::format("{} of 2 ranks, 4 microbatches", name),
            .input = {.form = Form::OrderFile, .schedule = *std::move(schedule)}};
  }
  CAPO_ASSERT(false, "every published schedule has one of two ranks and four microbatches");
  return {};
}

// The index-th of all combinations of a list of names with kinds and granularities, names fastest.
struct Combination {
  std::size_t name;
  ModuleKind kind;
  Granularity graphs;
};

template <typename Kinds>
Combination combination(std::size_t index, std::size_t names, const Kinds& kinds) {
  return {.name = index % names,
          .kind = kinds[index / names % kinds.size()],
          .graphs = kBoth[index / names / kinds.size()]};
}

template <typename Kinds>
std::size_t combinations(std::size_t names, const Kinds& kinds) {
  return names * kinds.size() * kBoth.size();
}

}  // namespace

std::optional<TruthCase> fixed_sound_case(std::size_t index) {
  const auto finish = [](TruthCase made, const Combination& of) {
    made = with_module(std::move(made), of.kind, PlanKind::Safe);
    made.made = Made::Sound;
    made.graphs = of.graphs;
    return made;
  };
  const std::size_t lists = combinations(kSoundLists.size(), kTruthKinds);
  if (index < lists) {
    const Combination of = combination(index, kSoundLists.size(), kTruthKinds);
    return finish(te2376(kSoundLists[of.name]), of);
  }
  index -= lists;
  const std::vector<std::string> names = published_names();
  if (index >= combinations(names.size(), kTruthKinds)) return std::nullopt;
  const Combination of = combination(index, names.size(), kTruthKinds);
  return finish(published_case(names[of.name]), of);
}

std::optional<TruthCase> fixed_faulty_case(std::size_t index) {
  if (index == 0) {
    TruthCase made = with_module(te2376("broken"), ModuleKind::GroupedLinear, PlanKind::Te);
    made.made = Made::Faulty;
    made.rule = "S15";
    return made;
  }
  --index;
  if (index >= combinations(kListsOfLayers.size(), kAliasing)) return std::nullopt;
  const Combination of = combination(index, kListsOfLayers.size(), kAliasing);
  TruthCase made = with_module(te2376(kListsOfLayers[of.name]), of.kind, PlanKind::Te);
  made.made = Made::Faulty;
  made.rule = "B04";
  made.declared.plan.model_chunks = {1, 2};
  made.graphs = of.graphs;
  return made;
}

}  // namespace capo::testing
