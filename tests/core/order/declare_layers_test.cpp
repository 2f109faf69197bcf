#include "core/order/declare.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using Named = std::vector<std::vector<std::vector<std::int32_t>>>;

Schedule schedule_of(const Layers& layers, std::int32_t chunks = 2) {
  Schedule schedule;
  schedule.ranks.push_back({.chunks = chunks, .layers = layers});
  return schedule;
}

Layers declared(const Named& named, const Layers& stated = {}) {
  Schedule schedule = schedule_of(stated);
  EXPECT_EQ(declare_layers(schedule, named), std::nullopt);
  return schedule.ranks.front().layers;
}

Layers list_of(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

TEST(DeclareLayers, GivesAnOrderThatSaysNothingTheLayersThatAreNamed) {
  EXPECT_EQ(declared({{{0, 1}}}), list_of({2, 2})) << "of every chunk";
  EXPECT_EQ(declared({{{0}, {0, 0, 1}}}), list_of({1, 3}));
  EXPECT_EQ(declared({{{0, 1}, {0}}, {{0}}}), list_of({2, 1})) << "of the first of two ranks";
}

TEST(DeclareLayers, LeavesAloneWhatOneNameSpeaksOf) {
  EXPECT_EQ(declared({{{0}}}), Layers{});
  EXPECT_EQ(declared({}), Layers{});
  EXPECT_EQ(declared({{{0}}}, list_of({4, 5})), list_of({4, 5}));
}

TEST(DeclareLayers, AgreesWithAnOrderThatSaysTheSame) {
  const Layers two{.form = Layers::Form::Count, .values = {2}};
  EXPECT_EQ(declared({{{0, 1}}}, two), two);
  EXPECT_EQ(declared({{{0, 1}, {0}}}, two), two) << "one name speaks for both layers";
}

TEST(DeclareLayers, RefusesAnOrderThatSaysOtherwise) {
  const auto refused = [](const Named& named, const Layers& stated) {
    Schedule schedule = schedule_of(stated);
    const auto why = declare_layers(schedule, named);
    EXPECT_EQ(schedule.ranks.front().layers, stated);
    return why.value_or("");
  };
  EXPECT_EQ(refused({{{0}, {0, 1}}}, list_of({1, 1})),
            "it names 2 layers of chunk 2 of rank 0, but the input says 1 layer");
  EXPECT_EQ(refused({{{0, 1}}}, {.form = Layers::Form::Count, .values = {3}}),
            "it names 2 layers of chunk 1 of rank 0, but the input says 3 layers");
  EXPECT_EQ(refused({{{0, 1}}}, {.form = Layers::Form::Null}),
            "it names 2 layers of chunk 1 of rank 0, but the input says 1 layer")
      << "TransformerEngine takes None for one layer each";
}

TEST(DeclareLayers, GivesChunksAndRanksThatAreNotNamedOneEach) {
  Schedule schedule = schedule_of({}, 3);
  schedule.ranks.push_back({.chunks = 1});
  schedule.ranks.push_back({.chunks = 2, .strays = 1});
  EXPECT_EQ(declare_layers(schedule, {{{0, 1}, {0}}, {{0, 1, 0}}}), std::nullopt);
  EXPECT_EQ(schedule.ranks[0].layers, list_of({2, 1, 1}));
  EXPECT_EQ(schedule.ranks[1].layers, list_of({3}));
  EXPECT_EQ(schedule.ranks[2].layers, Layers{});
}

TEST(DeclareLayers, LeavesOutChunksThatAreNotOfTheRank) {
  Schedule schedule;
  schedule.ranks.push_back({.chunks = 2, .strays = 1});
  EXPECT_EQ(declare_layers(schedule, {{{0, 1}}}), std::nullopt);
  EXPECT_EQ(schedule.ranks[0].layers, list_of({2}));
}

}  // namespace
}  // namespace capo
