// Faults of recipes: what a module that quantizes leaves outside of its graphs.
//
//   F1.1 F1.0 with weight_cache   ->   the first forward reads a stale weight: Y07 at F1.1
//
// The table in modules.cpp names them. Tested by fault_test.cpp and
// tests/properties/module_faults_test.cpp.

#include "core/base/index.h"
#include "testing/faults/modules.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

// The entries of a rank behind which magnitudes are reduced, if all modules delay their scales.
std::vector<std::size_t> forwards_and_backwards(const RankOrder& rank) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    const Kind kind = rank.order[at].kind;
    if (kind == Kind::Forward || kind == Kind::Backward || kind == Kind::BackwardInput)
      found.push_back(at);
  }
  return found;
}

}  // namespace

// A layernorm-mlp with a bias quantizes.
std::optional<Broken<Declared>> quantized_bias(const Declared& sound, std::size_t choice) {
  const ModuleSlip slip{.rule = "C12", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight};
  return with_module(sound, choice, slip, [](Module& module) {
    module.kind = ModuleKind::LayerNormMlp;
    module.recipe = Recipe::Mxfp8;
    module.flags.bias = true;
  });
}

// A module is told in Python whether to quantize its weight.
std::optional<Broken<Declared>> cache_baked_in(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C13"}, [](Module& module) {
    module.recipe = Recipe::Block;
    module.weight_cache = WeightCache::Python;
  });
}

// A module quantizes by a recipe that the device does not run.
std::optional<Broken<Declared>> recipe_refused(const Declared& sound, std::size_t choice) {
  auto broken = with_module(sound, choice, {.rule = "C14"},
                            [](Module& module) { module.recipe = Recipe::Mxfp8; });
  if (!broken) return broken;
  // No other module may be refused, nor lack its grouped product.
  for (Module& module : broken->subject.options.modules.list) {
    if (module.name != "faulty") module.recipe.reset();
  }
  broken->subject.options.environment.architecture = Architecture::Hopper;
  return broken;
}

// A grouped module quantizes by a recipe without a grouped product.
std::optional<Broken<Declared>> sizes_fetched(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C15"}, [choice](Module& module) {
    module.kind = choice % 2 == 0 ? ModuleKind::GroupedLinear : ModuleKind::GroupedLinearOp;
    module.splits = Splits::Device;
    module.recipe = Recipe::Delayed;
  });
}

// The first microbatch quantizes the weight of a chunk that runs another one first. Its second
// product reads what the first one made of a weight of the step before, so that a run shows it.
std::optional<Broken<Declared>> stale_weight(const Declared& sound, std::size_t choice) {
  const auto firsts = entries_that(sound.schedule, [](const Entry& entry, const RankOrder& rank) {
    const auto first = std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& other) {
      return other.kind == Kind::Forward && other.chunk == entry.chunk;
    });
    return &entry == &*first && entry.microbatch != 0;
  });
  const auto place = chosen(firsts, choice);
  if (!place) return std::nullopt;
  Declared broken = sound;
  const RankOrder& rank = broken.schedule.ranks[place->rank];
  const std::size_t chunk = rank.order[place->at].chunk.index();
  Module module{.name = "faulty",
                .kind = ModuleKind::LayerNormMlp,
                .recipe = Recipe::Mxfp8,
                .weight_cache = WeightCache::Device};
  module.flags.delay_wgrad = (*rank.delay)[chunk] == Delay::Always;
  module.flags.fuse_wgrad_accumulation = true;
  ModuleTable& table = broken.options.modules;
  table.layers[place->rank][chunk] = {static_cast<std::int32_t>(table.list.size())};
  table.list.push_back(std::move(module));
  return {{broken, "Y07", fault_place(broken.schedule, *place)}};
}

// Rank 0 reduces the magnitudes of delayed scaling with a rank that runs another order.
std::optional<Broken<Declared>> amax_out_of_step(const Declared& sound, std::size_t choice) {
  const auto& ranks = sound.schedule.ranks;
  if (ranks.size() < 2) return std::nullopt;
  const std::size_t other = 1 + choice % (ranks.size() - 1);
  const std::vector<std::size_t> of_0 = forwards_and_backwards(ranks.front());
  const std::vector<std::size_t> of_other = forwards_and_backwards(ranks[other]);
  const auto is_forward = [&](std::size_t rank, std::size_t at) {
    return ranks[rank].order[at].kind == Kind::Forward;
  };
  std::size_t k = 0;
  while (k < of_0.size() && k < of_other.size() &&
         is_forward(0, of_0[k]) == is_forward(other, of_other[k])) {
    ++k;
  }
  if ((k == of_0.size() && k == of_other.size()) || of_other.empty()) return std::nullopt;
  Declared broken = sound;
  broken.options.environment.amax_group = {0, static_cast<std::int32_t>(other)};
  for (Module& module : broken.options.modules.list) {
    module.recipe = Recipe::Delayed;
    if (is_grouped(*module.kind)) module.splits.reset();  // else C15
  }
  const std::size_t at = of_other[std::min(k, of_other.size() - 1)];
  return {{broken, "T15", fault_place(broken.schedule, {.rank = other, .at = at})}};
}

}  // namespace capo::testing
