#include "testing/generators/arbitrary_model.h"

#include "core/text/model_parts.h"
#include "core/text/model_reader.h"
#include "testing/generators/topology.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace capo::testing {
namespace {

void expect_read_back(const Model& model) {
  const auto read = read_model(rc::toString(model), Limits{});
  ASSERT_TRUE(read) << rc::toString(model);
  EXPECT_EQ(*read, model) << rc::toString(model);
}

TEST(ArbitraryModel, ReadsBackAndSoDoesWhatItShrinksTo) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_model(), 200)) {
    expect_read_back(shrinkable.value());
    auto shrinks = shrinkable.shrinks();
    for (auto smaller = shrinks.next(); smaller; smaller = shrinks.next())
      expect_read_back(smaller->value());
  }
}

// Among the models that declare `member` each of its values is equally likely.
template <typename Value, typename Member>
void expect_declared(const std::vector<Model>& models, double odds, Member member,
                     const std::vector<Value>& among) {
  std::vector<Value> values;
  for (const Model& model : models) {
    if (const std::optional<Value> value = member(model)) values.push_back(*value);
  }
  EXPECT_TRUE(is_share(values.size(), models.size(), odds));
  EXPECT_TRUE(are_even(values, among));
}

TEST(ArbitraryModel, DeclaresTopologyEnvironmentTransfersAndPlanAsOftenAsItClaims) {
  const auto models = sample(arbitrary_model(), 6000);
  expect_declared(
      models, 1.0 / 2, [](const Model& m) { return m.topology; },
      std::vector(kEveryTopology.begin(), kEveryTopology.end()));
  expect_declared<Communicators>(
      models, 1.0 / 2, [](const Model& m) { return m.environment.communicators; },
      {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge});
  expect_declared<TransferMode>(models, 1.0 / 2,
                                [](const Model& m) { return m.environment.transfers; },
                                {TransferMode::Rendezvous, TransferMode::Buffered});
  expect_declared<MegatronCalls>(
      models, 1.0 / 2, [](const Model& m) { return m.environment.p2p; },
      {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush});
  expect_declared(
      models, 1.0 / 2, [](const Model& m) { return m.transfer.latency; }, numbers(0.0, 5.0));
  expect_declared(
      models, 1.0 / 2, [](const Model& m) { return m.transfer.bandwidth; }, numbers(1.0, 4.0));
  expect_declared(
      models, 1.0 / 2, [](const Model& m) { return m.transfer.bytes; },
      numbers<std::int64_t>(0, 8));
  expect_declared<PlanKind>(models, 1.0 / 2, [](const Model& m) { return m.plan.kind; },
                            {PlanKind::Te, PlanKind::Safe, PlanKind::McoreLocal});
  const auto expect_share = [&](auto fits, double odds) {
    EXPECT_TRUE(is_share(count_of(models, fits), models.size(), odds));
  };
  expect_share([](const Model& m) { return m.environment.ep_overlap; }, 1.0 / 4);
  expect_share([](const Model& m) { return m.environment.ep_slots.multi_token_prediction; },
               1.0 / 4);
  expect_share([](const Model& m) { return m.environment.ep_slots.early_release; }, 1.0 / 4);
  expect_share([](const Model& m) { return m.environment.ep_slots.delayed_weights; }, 1.0 / 4);
  expect_share([](const Model& m) { return m.environment.has_weight_stream(); }, 1.0 / 4);
  expect_share([](const Model& m) { return m.plan.aliases.has_value(); }, 1.0 / 2);
  expect_share([](const Model& m) { return m.plan.aliases && m.plan.aliases->input; }, 1.0 / 4);
  expect_share([](const Model& m) { return m.plan.aliases && m.plan.aliases->grad_output; },
               1.0 / 4);
  expect_share([](const Model& m) { return m.plan.budget.has_value(); }, 1.0 / 4);
  expect_share([](const Model& m) { return !m.plan.model_chunks.empty(); }, 1.0 / 4);
}

std::vector<Module> modules(const std::vector<Model>& models) {
  std::vector<Module> all;
  for (const Model& model : models)
    all.insert(all.end(), model.modules.list.begin(), model.modules.list.end());
  return all;
}

TEST(ArbitraryModel, HasModulesOfEverySort) {
  const auto models = sample(arbitrary_model(), 3000);
  std::vector<std::size_t> counts;
  for (const Model& model : models) {
    EXPECT_EQ(model.modules.layers.empty(), model.modules.list.empty());
    if (!model.modules.list.empty()) counts.push_back(model.modules.list.size());
  }
  EXPECT_TRUE(is_share(counts.size(), models.size(), 3.0 / 4));
  EXPECT_TRUE(are_even(counts, numbers<std::size_t>(1, 3)));
  const auto all = modules(models);
  EXPECT_TRUE(are_even(parts(all, [](const Module& module) { return module.output_position; }),
                       numbers<std::int64_t>(0, 2)));
  for (const auto slot : {&ModuleBytes::input, &ModuleBytes::output, &ModuleBytes::activations,
                          &ModuleBytes::operands, &ModuleBytes::weight}) {
    const auto count =
        count_of(all, [&](const Module& one) { return (one.bytes.*slot).has_value(); });
    EXPECT_TRUE(is_share(count, all.size(), 1.0 / 4));
  }
  for (const auto slot : {&ModuleCost::forward, &ModuleCost::backward, &ModuleCost::weight,
                          &ModuleCost::dispatch, &ModuleCost::combine}) {
    const auto count =
        count_of(all, [&](const Module& one) { return (one.cost.*slot).has_value(); });
    EXPECT_TRUE(is_share(count, all.size(), 1.0 / 4));
  }
}

// Flags that a sound module leaves alone are those that are turned over, once in 16.
TEST(ArbitraryModel, TurnsFlagsOverThatASoundModuleLeavesAlone) {
  const auto all = modules(sample(arbitrary_model(), 3000));
  for (const auto flag :
       {&ModuleFlags::overwrite_main_grad, &ModuleFlags::is_first_microbatch,
        &ModuleFlags::frozen_weight, &ModuleFlags::sharded_weight, &ModuleFlags::contiguous_input,
        &ModuleFlags::synchronises, &ModuleFlags::offloaded}) {
    const auto count =
        count_of(all, [&](const Module& one) { return one.flags.*flag != ModuleFlags{}.*flag; });
    EXPECT_TRUE(is_share(count, all.size(), 1.0 / 16));
  }
  for (const ModuleFlag& flag : kModuleFlags) {
    const auto on = count_of(all, [&](const Module& one) { return one.flags.*flag.slot; });
    EXPECT_TRUE(0 < on && on < all.size()) << flag.key;
  }
}

// If layers are given rank by rank, there are several ranks with chances 3/4 in one of four. With
// one rank of one chunk the forms look alike, so each is seen at least as often as it is drawn: one
// layer for all in 1/4, and also in 1/3 of the lists for every chunk; the other lists, 1/6 of all,
// have several.
TEST(ArbitraryModel, GivesLayersAtEveryDepth) {
  std::vector<std::size_t> layers;
  std::size_t one_layer = 0;
  std::size_t one_chunk = 0;
  std::size_t several_chunks = 0;
  std::size_t several_ranks = 0;
  std::size_t all = 0;
  for (const Model& model : sample(arbitrary_model(), 6000)) {
    const auto& ranks = model.modules.layers;
    if (ranks.empty()) continue;
    ++all;
    const bool chunks = ranks.front().size() > 1;
    if (ranks.size() == 1)
      ++(chunks ? several_chunks : ranks[0][0].size() > 1 ? one_chunk : one_layer);
    if (ranks.size() < 2) continue;
    ++several_ranks;
    layers.push_back(ranks.front().front().size());
    EXPECT_TRUE(model.stages.empty() || model.stages.size() == ranks.size());
  }
  EXPECT_GT(one_layer, all * 5 / 16);
  EXPECT_GT(one_chunk, all * 5 / 32);
  EXPECT_GT(several_chunks, all / 16);
  EXPECT_TRUE(is_share(several_ranks, all, 3.0 / 16));
  EXPECT_TRUE(are_even(layers, numbers<std::size_t>(1, 3)));
}

TEST(ArbitraryModel, HasGroupsThatShareNoRank) {
  std::size_t with_groups = 0;
  std::size_t reshards = 0;
  std::vector<bool> streams;
  std::size_t groups = 0;
  const auto models = sample(arbitrary_model(), 3000);
  for (const Model& model : models) {
    with_groups += model.groups.empty() ? 0 : 1;
    std::set<std::int32_t> members;
    for (const CollectiveGroup& group : model.groups) {
      ++groups;
      for (const std::int32_t rank : group.members) EXPECT_TRUE(members.insert(rank).second);
      EXPECT_FALSE(group.members.empty() || group.actions.empty());
      reshards += std::count(group.actions.begin(), group.actions.end(), Kind::Reshard) > 0 ? 1 : 0;
      for (const Kind action : group.actions) {
        streams.push_back(std::any_of(group.streams.begin(), group.streams.end(),
                                      [&](const auto& stream) { return stream.first == action; }));
      }
    }
  }
  EXPECT_TRUE(is_share(with_groups, models.size(), 1.0 / 2));
  EXPECT_TRUE(is_share(reshards, groups, 1.0 / 2));
  EXPECT_TRUE(is_share(count_of(streams, [](bool own) { return own; }), streams.size(), 1.0 / 4));
}

TEST(ArbitraryModel, ShrinksToNothing) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_model(), 50))
    EXPECT_EQ(shrink_path(shrinkable).back(), Model{});
}

}  // namespace
}  // namespace capo::testing
