#include "testing/generators/arbitrary_model.h"

#include "core/text/model_parts.h"
#include "testing/generators/sound_module.h"
#include "testing/generators/topology.h"
#include "testing/model_text.h"

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace capo {

void showValue(const Model& model, std::ostream& out) {
  out << testing::model_text(model);
}

namespace testing {

namespace {

using ChunkLayers = std::vector<std::int32_t>;
using RankLayers = std::vector<ChunkLayers>;

Environment draw_environment(Dice& dice) {
  Environment environment;
  if (dice.one_in(2)) environment.communicators = static_cast<Communicators>(dice.below(3));
  if (dice.one_in(2)) environment.transfers = static_cast<TransferMode>(dice.below(2));
  if (dice.one_in(2)) environment.p2p = static_cast<MegatronCalls>(dice.below(3));
  environment.ep_overlap = dice.one_in(4);
  environment.ep_slots = {.multi_token_prediction = dice.one_in(4),
                          .early_release = dice.one_in(4),
                          .delayed_weights = dice.one_in(4)};
  environment.weight_stream = dice.one_in(4);
  return environment;
}

Module draw_module(Dice& dice, std::string name) {
  Module module =
      draw_sound_module(dice, dice.one_in(2) ? Delay::Always : Delay::Never, std::move(name));
  for (const ModuleFlag& flag : kModuleFlags) {
    if (dice.one_in(16)) module.flags.*flag.slot = !(module.flags.*flag.slot);
  }
  module.output_position = dice.between(0, 2);
  for (const auto slot : {&ModuleBytes::input, &ModuleBytes::output, &ModuleBytes::activations,
                          &ModuleBytes::operands, &ModuleBytes::weight}) {
    if (dice.one_in(4)) module.bytes.*slot = dice.between(0, 1000);
  }
  for (const auto slot : {&ModuleCost::forward, &ModuleCost::backward, &ModuleCost::weight,
                          &ModuleCost::dispatch, &ModuleCost::combine}) {
    if (dice.one_in(4)) module.cost.*slot = dice.between(0, 20);
  }
  return module;
}

ModuleTable draw_modules(Dice& dice, const Schedule& placement) {
  ModuleTable table;
  if (dice.one_in(4)) return table;
  for (std::int32_t count = dice.between(1, 3), i = 0; i < count; ++i) {
    table.list.push_back(draw_module(dice, "m" + std::to_string(i)));
  }
  const auto draw_chunk = [&](std::size_t layers) {
    ChunkLayers chunk(layers);
    for (std::int32_t& layer : chunk)
      layer = static_cast<std::int32_t>(dice.below(table.list.size()));
    return chunk;
  };
  const auto draw_rank = [&](std::int32_t chunks) {
    RankLayers rank;
    for (; chunks > 0; --chunks) rank.push_back(draw_chunk(1 + dice.below(3)));
    return rank;
  };
  switch (dice.below(4)) {
    case 0:
      table.layers = {{draw_chunk(1)}};
      break;
    case 1:
      table.layers = {draw_rank(1)};
      break;
    case 2:
      table.layers = {draw_rank(placement.ranks.front().chunks)};
      break;
    default:
      for (const RankOrder& rank : placement.ranks) table.layers.push_back(draw_rank(rank.chunks));
      break;
  }
  return table;
}

CollectiveGroup draw_group(Dice& dice, std::string name, std::vector<std::int32_t> members) {
  CollectiveGroup group{.name = std::move(name), .members = std::move(members)};
  for (const Kind kind : {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                          Kind::CombineBackward, Kind::Unshard, Kind::Reshard}) {
    if (dice.one_in(2)) group.actions.push_back(kind);
  }
  if (dice.one_in(2) || group.actions.empty()) group.actions.push_back(Kind::ReduceGradient);
  for (const Kind kind : group.actions) {
    if (dice.one_in(4)) group.streams.emplace_back(kind, "side");
  }
  return group;
}

// No rank is in both, so that none performs an action in two.
std::vector<CollectiveGroup> draw_groups(Dice& dice, std::size_t ranks) {
  std::vector<CollectiveGroup> groups;
  if (dice.one_in(2)) return groups;
  std::array<std::vector<std::int32_t>, 2> members;
  for (std::size_t r = 0; r < ranks; ++r)
    members[dice.below(2)].push_back(static_cast<std::int32_t>(r));
  for (auto& some : members) {
    if (some.empty()) continue;
    groups.push_back(draw_group(dice, "g" + std::to_string(groups.size()), std::move(some)));
  }
  return groups;
}

TransferCost draw_transfer(Dice& dice) {
  TransferCost cost;
  if (dice.one_in(2)) cost.latency = dice.between(0, 5);
  if (dice.one_in(2)) cost.bandwidth = dice.between(1, 4);
  if (dice.one_in(2)) cost.bytes = dice.between(0, 8);
  return cost;
}

PlanOptions draw_plan(Dice& dice) {
  PlanOptions plan;
  constexpr std::array kKinds{PlanKind::Te, PlanKind::Safe, PlanKind::McoreLocal};
  if (dice.one_in(2)) plan.kind = kKinds[dice.below(3)];
  if (dice.one_in(2))
    plan.aliases = Aliases{.input = dice.one_in(2), .grad_output = dice.one_in(2)};
  if (dice.one_in(4)) plan.budget = dice.between(1, 1000);
  plan.paged_stash = dice.one_in(4);
  if (dice.one_in(4)) {
    plan.model_chunks.resize(1 + dice.below(3));
    for (std::int32_t& layers : plan.model_chunks) layers = dice.between(1, 3);
  }
  return plan;
}

std::vector<Model> simpler(const Model& model) {
  std::vector<Model> out;
  const auto with = [&](auto change) {
    out.push_back(model);
    change(out.back());
    if (out.back() == model) out.pop_back();
  };
  with([](Model& m) {
    m.topology.reset();
    m.stages.clear();
  });
  with([](Model& m) { m.environment = {}; });
  with([](Model& m) { m.modules = {}; });
  with([](Model& m) { m.groups.clear(); });
  with([](Model& m) { m.transfer = {}; });
  with([](Model& m) { m.plan = {}; });
  for (const Module& module : model.modules.list) {
    with([&](Model& m) { m.modules = {.list = {module}, .layers = {{{0}}}}; });
  }
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    with([g](Model& m) { m.groups.erase(m.groups.begin() + static_cast<std::ptrdiff_t>(g)); });
  }
  for (std::size_t i = 0; i < model.modules.list.size(); ++i) {
    with([i](Model& m) { m.modules.list[i] = {.name = m.modules.list[i].name}; });
  }
  return out;
}

}  // namespace

Model draw_arbitrary_model(Dice& dice) {
  Model model;
  const Schedule placement = draw_topology(dice);
  if (dice.one_in(2)) {
    model.topology = placement.topology;
    if (placement.topology == Topology::Custom) {
      for (const RankOrder& rank : placement.ranks) model.stages.push_back(rank.stages);
    }
  }
  model.environment = draw_environment(dice);
  model.modules = draw_modules(dice, placement);
  model.groups = draw_groups(dice, placement.ranks.size());
  model.transfer = draw_transfer(dice);
  model.plan = draw_plan(dice);
  return model;
}

rc::Gen<Model> arbitrary_model() {
  return generator(draw_arbitrary_model, simpler);
}

}  // namespace testing
}  // namespace capo
