// Weights of the step before, and reductions of magnitudes, are found where the oracle says.

#include "testing/generators/sound_planned.h"
#include "testing/laws/checked.h"
#include "testing/oracle/quantized.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string>
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
