// Weights of the step before, modules that no capture takes as they are, and reductions of
// magnitudes are found where the oracle says.

#include "testing/generators/sound_planned.h"
#include "testing/laws/checked.h"
#include "testing/oracle/quantized.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

// A rank and a chunk, counted from 1.
using ChunkOfRank = std::pair<std::int32_t, int>;

// Each chunk has a module of its own, which keeps its quantized weight over microbatches.
void keep_quantized_weights(Declared& declared) {
  ModuleTable& modules = declared.options.modules;
  modules = {};
  for (const RankOrder& rank : declared.schedule.ranks) {
    auto& chunks = modules.layers.emplace_back();
    for (std::int32_t chunk = 0; chunk < rank.chunks; ++chunk) {
      const std::size_t number = modules.list.size();
      chunks.push_back({static_cast<std::int32_t>(number)});
      Module module{.name = "m" + std::to_string(number),
                    .kind = ModuleKind::Linear,
                    .recipe = Recipe::Block,
                    .weight_cache = WeightCache::Device};
      module.flags.delay_wgrad = (*rank.delay)[static_cast<std::size_t>(chunk)] == Delay::Always;
      module.flags.fuse_wgrad_accumulation = true;
      modules.list.push_back(std::move(module));
    }
  }
}

// Each microbatch takes the place of another, in capture and replay.
void rotate_all_microbatches(Schedule& schedule) {
  for (RankOrder& rank : schedule.ranks) {
    const std::int32_t by = *rc::gen::inRange<std::int32_t>(0, *schedule.microbatches);
    for (Entry& entry : rank.order)
      entry.microbatch = (entry.microbatch + by) % *schedule.microbatches;
  }
}

// The first stale forward of each chunk.
std::map<ChunkOfRank, std::size_t> first_stale(const Schedule& schedule) {
  std::map<ChunkOfRank, std::size_t> first;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<oracle::KeptForward> forwards;
    std::vector<std::size_t> places;
    const std::vector<Entry>& order = schedule.ranks[r].order;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (order[at].kind != Kind::Forward) continue;
      forwards.push_back({.chunk = order[at].chunk, .microbatch = order[at].microbatch});
      places.push_back(at);
    }
    for (const int stale : oracle::stale_forwards(forwards)) {
      const auto k = static_cast<std::size_t>(stale);
      first.emplace(ChunkOfRank{static_cast<std::int32_t>(r), forwards[k].chunk}, places[k]);
    }
  }
  return first;
}

RC_GTEST_PROP(QuantizedWeights, AreStaleWhereTheOracleSays, ()) {
  Declared declared = *sound_planned();
  keep_quantized_weights(declared);
  rotate_all_microbatches(declared.schedule);
  declared.options.plan = {};  // so that nothing is an error of the buffers
  const std::map<ChunkOfRank, std::size_t> expected = first_stale(declared.schedule);
  const Checked verdict = checked(declared);
  std::map<ChunkOfRank, std::size_t> found;
  for (const Diagnostic& finding : verdict.of(Family::Replay)) {
    if (finding.rule != "Y07") continue;
    const WitnessEntry& read = finding.witness.tasks.front();
    const RankOrder& rank = declared.schedule.ranks[static_cast<std::size_t>(read.rank)];
    found.emplace(ChunkOfRank{read.rank, rank.order[read.index].chunk}, read.index);
  }
  RC_CLASSIFY(!expected.empty());
  RC_ASSERT(found == expected);
}

// A module of any kind and recipe; what delays its weight gradients is for the chunk to say.
Module any_module() {
  constexpr std::array kKinds{ModuleKind::Linear,          ModuleKind::LayerNormLinear,
                              ModuleKind::LayerNormMlp,    ModuleKind::GroupedLinear,
                              ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp};
  Module module{.kind = *rc::gen::elementOf(kKinds)};
  module.recipe = *rc::gen::element(Recipe::None, Recipe::Delayed, Recipe::Current, Recipe::Block,
                                    Recipe::Mxfp8, Recipe::Nvfp4);
  if (*rc::gen::inRange(0, 4) == 0) module.dtype = DataType::Fp32;
  if (is_grouped(*module.kind)) module.splits = *rc::gen::element(Splits::Host, Splits::Device);
  if (*rc::gen::arbitrary<bool>()) {
    module.weight_cache = *rc::gen::element(WeightCache::Device, WeightCache::Python);
  }
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.bias = *rc::gen::arbitrary<bool>();
  module.flags.frozen_weight = *rc::gen::inRange(0, 4) == 0;
  module.flags.high_precision_backward = *rc::gen::inRange(0, 4) == 0;
  return module;
}

oracle::QuantizedModule as_the_oracle_has_it(const Module& module) {
  return {.recipe = static_cast<oracle::QuantizedModule::Recipe>(recipe_of(module)),
          .groups = is_grouped(*module.kind),
          .operation = facts_of(*module.kind).operation,
          .dense_mlp = module.kind == ModuleKind::LayerNormMlp,
          .sizes_on_device = module.splits == Splits::Device,
          .full_precision = module.dtype == DataType::Fp32,
          .delays_weights = module.flags.delay_wgrad,
          .trained = !module.flags.frozen_weight,
          .bias = module.flags.bias,
          .plain_backward = module.flags.high_precision_backward,
          .python_says_requantize = module.weight_cache == WeightCache::Python};
}

// Module by module, as findings name them.
using Troubles = std::set<std::pair<std::string, oracle::QuantizingTrouble>>;

RC_GTEST_PROP(QuantizingModules, AreInTroubleWhereTheOracleSays, ()) {
  Declared declared = *sound_planned();
  keep_quantized_weights(declared);
  declared.options.plan = {};
  Environment& environment = declared.options.environment;
  oracle::QuantizingDevice device;
  device.kind = *rc::gen::element(oracle::QuantizingDevice::Any, oracle::QuantizingDevice::Hopper,
                                  oracle::QuantizingDevice::Blackwell);
  if (device.kind != oracle::QuantizingDevice::Any) {
    environment.architecture = device.kind == oracle::QuantizingDevice::Hopper
                                   ? Architecture::Hopper
                                   : Architecture::Blackwell;
  }
  device.cublaslt = *rc::gen::element(0, 0, 0, 1302, 1303, 1304, 1305, 1306);
  if (device.cublaslt != 0) environment.cublaslt = device.cublaslt;
  // A version alone concerns products of 16 bits as well, whether or not any module quantizes.
  const bool some_quantize = *rc::gen::inRange(0, 4) != 0;
  Troubles expected;
  for (Module& module : declared.options.modules.list) {
    Module drawn = any_module();
    drawn.name = module.name;
    drawn.flags.delay_wgrad = module.flags.delay_wgrad;
    if (!some_quantize) drawn.recipe.reset();
    module = std::move(drawn);
    for (const oracle::QuantizingTrouble trouble :
         oracle::troubles_of(as_the_oracle_has_it(module), device)) {
      expected.emplace(module.name, trouble);
    }
  }
  const std::map<std::string_view, oracle::QuantizingTrouble> of_rule{
      {"C12", oracle::QuantizingTrouble::BiasMissed},
      {"C13", oracle::QuantizingTrouble::WeightNeverRenewed},
      {"C14", oracle::QuantizingTrouble::RecipeRefused},
      {"C15", oracle::QuantizingTrouble::SizesFetched}};
  Troubles found;
  const Checked verdict = checked(declared);
  for (const Diagnostic& finding : verdict.of(Family::Capture)) {
    const auto rule = of_rule.find(finding.rule);
    if (rule == of_rule.end()) continue;
    const std::size_t begin = finding.message.find('`') + 1;
    const std::size_t end = finding.message.find('`', begin);
    found.emplace(finding.message.substr(begin, end - begin), rule->second);
  }
  RC_CLASSIFY(!expected.empty());
  RC_ASSERT(found == expected);
}

std::string passes_of(const RankOrder& rank) {
  std::string passes;
  for (const Entry& entry : rank.order) {
    if (entry.kind == Kind::Forward) passes += 'F';
    if (entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput) passes += 'B';
  }
  return passes;
}

RC_GTEST_PROP(Magnitudes, PartWhereTheOracleSays, ()) {
  Declared declared = *sound_planned();
  const std::size_t ranks = declared.schedule.ranks.size();
  RC_PRE(ranks > 1);
  declared.options.plan = {};
  for (Module& module : declared.options.modules.list) module.recipe = Recipe::Delayed;
  auto& group = declared.options.environment.amax_group;
  group.resize(ranks);
  std::iota(group.begin(), group.end(), 0);
  std::vector<std::string> members;
  for (const RankOrder& rank : declared.schedule.ranks) members.push_back(passes_of(rank));
  const std::optional<int> expected = oracle::parting_of_magnitudes(members);
  const Checked verdict = checked(declared);
  std::optional<std::string> found;
  for (const Diagnostic& finding : verdict.of(Family::Transfers)) {
    if (finding.rule == "T15") found = finding.message;
  }
  RC_CLASSIFY(expected.has_value());
  RC_ASSERT(found.has_value() == expected.has_value());
  if (found) {
    const std::string number = "from number " + std::to_string(*expected + 1) + " on:";
    RC_ASSERT(found->find(number) != std::string::npos);
  }
}

}  // namespace
}  // namespace capo::testing
