// The parameters of layers, the places of their parts on an engine, and handles to live ones.

#include "run/setup/parameters.h"
#include "run/host/host_engine.h"
#include "run/kernels/stored.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using Lines = std::vector<std::string>;

// "fc1 weight 4 x 192, rows of 8": role, groups, elements of a group, columns.
Lines lines(const LayerShape& shape) {
  Lines all;
  for (const ParameterForm& form : parameter_forms(shape, true)) {
    all.push_back(std::string(name_of(form.role, shape.kind)) + " " + std::to_string(form.groups) +
                  " x " + std::to_string(form.elements) + ", rows of " +
                  std::to_string(form.columns));
  }
  return all;
}

LayerShape shape_of(ModuleKind kind, bool bias = false) {
  return {.kind = kind,
          .tokens = 5,
          .hidden = 8,
          .ffn = 12,
          .groups = is_grouped(kind) || has_router(kind) ? 4 : 1,
          .heads = 6,
          .kv_heads = 2,
          .head_dim = 3,
          .grouped = is_grouped(kind),
          .bias = bias};
}

TEST(ParameterForms, ALinearHasAWeightOfOutputsTimesInputs) {
  EXPECT_EQ(lines(shape_of(ModuleKind::Linear)), (Lines{"weight 1 x 96, rows of 8"}));
  EXPECT_EQ(lines(shape_of(ModuleKind::BasicLinearOp, true)),
            (Lines{"weight 1 x 96, rows of 8", "bias 1 x 12, rows of 12"}));
}

TEST(ParameterForms, ANormHasTwoOfTheInputsColumns) {
  EXPECT_EQ(lines(shape_of(ModuleKind::LayerNormLinear, true)),
            (Lines{"norm weight 1 x 8, rows of 8", "norm bias 1 x 8, rows of 8",
                   "weight 1 x 96, rows of 8", "bias 1 x 12, rows of 12"}));
}

// A router's weight makes a logit of each group.
TEST(ParameterForms, ARouterStandsBetweenANormAndExperts) {
  EXPECT_EQ(lines(shape_of(ModuleKind::MoeLayer)),
            (Lines{"norm weight 1 x 8, rows of 8", "norm bias 1 x 8, rows of 8",
                   "router weight 1 x 32, rows of 8", "fc1 weight 4 x 192, rows of 8",
                   "fc2 weight 4 x 96, rows of 12"}));
}

// Its attention's parameters come first, under names of their own.
TEST(ParameterForms, ATransformerLayerHasThoseOfBothItsHalves) {
  const Lines attention{"attention norm weight 1 x 8, rows of 8",
                        "attention norm bias 1 x 8, rows of 8", "qkv weight 1 x 240, rows of 8",
                        "output weight 1 x 144, rows of 18"};
  const auto with = [&](Lines second) {
    second.insert(second.begin(), attention.begin(), attention.end());
    return second;
  };
  LayerShape shape = shape_of(ModuleKind::TransformerLayer);
  EXPECT_EQ(lines(shape), with(lines(shape_of(ModuleKind::LayerNormMlp))));
  shape.groups = 4;
  shape.top_k = 2;
  EXPECT_EQ(lines(shape), with(lines(shape_of(ModuleKind::MoeLayer))));
  std::set<std::string> names;
  for (const Role role : kAllRoles) names.emplace(name_of(role, ModuleKind::TransformerLayer));
  EXPECT_EQ(names.size(), kRoles);
  EXPECT_FALSE(names.contains(""));
}

// The first product makes the gate and what it is multiplied with: twice 12 columns.
TEST(ParameterForms, AnMlpHasTwoWeightsTheFirstTwiceAsWide) {
  EXPECT_EQ(lines(shape_of(ModuleKind::LayerNormMlp)),
            (Lines{"norm weight 1 x 8, rows of 8", "norm bias 1 x 8, rows of 8",
                   "fc1 weight 1 x 192, rows of 8", "fc2 weight 1 x 96, rows of 12"}));
  EXPECT_EQ(lines(shape_of(ModuleKind::GroupedMlp, true)),
            (Lines{"fc1 weight 4 x 192, rows of 8", "fc1 bias 4 x 24, rows of 24",
                   "fc2 weight 4 x 96, rows of 12", "fc2 bias 4 x 8, rows of 8"}));
}

// Queries of 6 heads, keys and values of 2, of 3 columns each: 30. The second reads 18.
TEST(ParameterForms, AnAttentionHasTwoWeightsTheFirstOfQueriesKeysAndValues) {
  EXPECT_EQ(lines(shape_of(ModuleKind::Attention, true)),
            (Lines{"qkv weight 1 x 240, rows of 8", "qkv bias 1 x 30, rows of 30",
                   "output weight 1 x 144, rows of 18", "output bias 1 x 8, rows of 8"}));
}

TEST(ParameterForms, GroupsHaveAWeightEach) {
  for (const ModuleKind kind : {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp}) {
    EXPECT_EQ(lines(shape_of(kind, true)),
              (Lines{"weight 4 x 96, rows of 8", "bias 4 x 12, rows of 12"}));
  }
}

TEST(ParameterForms, HaveTheTypeOfTheLayerAndLieAsTheyAreTold) {
  LayerShape shape = shape_of(ModuleKind::GroupedMlp, true);
  shape.type = DataType::Fp16;
  for (const bool single : {true, false}) {
    for (const ParameterForm& form : parameter_forms(shape, single)) {
      EXPECT_EQ(form.type, DataType::Fp16);
      EXPECT_EQ(form.single, single);
      EXPECT_FALSE(form.fused);
    }
  }
}

TEST(ParameterForms, EachRoleHasItsName) {
  std::set<std::string> names;
  for (const Role role : kAllRoles) names.emplace(name_of(role, ModuleKind::MoeLayer));
  names.erase("");
  EXPECT_EQ(names, (std::set<std::string>{"norm weight", "norm bias", "router weight", "fc1 weight",
                                          "fc1 bias", "fc2 weight", "fc2 bias"}));
  EXPECT_EQ(name_of(Role::Router, ModuleKind::GroupedMlp), "");
}

ParameterForm grouped_form(bool single) {
  return {.name = "experts", .groups = 3, .elements = 10, .columns = 5, .single = single};
}

TEST(GroupedTensor, TheTableOnTheDevicePointsToTheParts) {
  for (const bool single : {true, false}) {
    host::HostEngine engine;
    const GroupedTensor tensor = make_tensor(engine, grouped_form(single), DataType::Fp32);
    ASSERT_EQ(tensor.parts.size(), 3U);
    std::array<void*, 3> table{};
    engine.read(table.data(), tensor.table, sizeof(table));
    for (std::size_t group = 0; group < 3; ++group) EXPECT_EQ(table[group], tensor.parts[group]);
    EXPECT_EQ(tensor.part_bytes(), 40);
    EXPECT_EQ(engine.error(), std::nullopt);
  }
}

TEST(GroupedTensor, PartsOfASingleOneLieOneBehindTheOther) {
  host::HostEngine engine;
  const GroupedTensor tensor = make_tensor(engine, grouped_form(true), DataType::Bf16);
  EXPECT_EQ(tensor.part_bytes(), 20);
  EXPECT_EQ(tensor.parts[1] - tensor.parts[0], 20);
  EXPECT_EQ(tensor.parts[2] - tensor.parts[1], 20);
}

// In whatever order they are asked for, and one more than once.
TEST(GroupedTensor, NumbersAtPlacesAreThoseOfTheWhole) {
  for (const DataType type : {DataType::Bf16, DataType::Fp32}) {
    for (const bool single : {true, false}) {
      host::HostEngine engine;
      const GroupedTensor tensor = make_tensor(
          engine, {.name = "weight", .groups = 3, .elements = 5, .single = single}, type);
      draw_into(engine, tensor, {.draw = {.seed = 1, .stream = 2}, .drawn = 15});
      const std::vector<float> whole = values_of(engine, tensor);
      const std::vector<std::int64_t> at{14, 0, 4, 5, 9, 10, 4, 1};
      const std::vector<float> some = values_at(engine, tensor, at);
      ASSERT_EQ(some.size(), at.size());
      for (std::size_t i = 0; i < at.size(); ++i) {
        EXPECT_EQ(some[i], whole[static_cast<std::size_t>(at[i])]) << at[i];
      }
      EXPECT_TRUE(values_at(engine, tensor, {}).empty());
    }
  }
}

TEST(GroupedTensor, PartsOfSeparateOnesAreAlignedAndApart) {
  host::HostEngine engine;
  const GroupedTensor tensor = make_tensor(engine, grouped_form(false), DataType::Bf16);
  for (const std::byte* part : tensor.parts) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): an address as a number
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part) % kAlignment, 0U);
  }
  EXPECT_GT(tensor.parts[1] - tensor.parts[0], 20);
  EXPECT_GT(tensor.parts[2] - tensor.parts[1], 20);
}

TEST(GroupedTensor, TheTypeIsTheOneAskedForAndNotTheForms) {
  host::HostEngine engine;
  const ParameterForm form = grouped_form(true);
  EXPECT_EQ(make_tensor(engine, form, DataType::Fp32).type, DataType::Fp32);
  EXPECT_EQ(make_tensor(engine, form, DataType::Fp16).type, DataType::Fp16);
}

// Parts are drawn one after another: the numbers are those of one tensor of all of them.
TEST(GroupedTensor, ValuesAreDrawnPartByPartAndComeBack) {
  const Drawing numbers{.draw = {.seed = 1, .stream = 2}, .scale = 3, .offset = 10, .drawn = 28};
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    for (const bool single : {true, false}) {
      host::HostEngine engine;
      const GroupedTensor tensor = make_tensor(engine, grouped_form(single), type);
      draw_into(engine, tensor, numbers);
      const std::vector<float> values = values_of(engine, tensor);
      const std::vector<float> drawn =
          values_of(DrawnTensor{.type = type, .count = 30, .numbers = numbers});
      EXPECT_EQ(to_stored(values, DataType::Fp32), to_stored(drawn, DataType::Fp32));
      EXPECT_FALSE(std::isnan(values[27]));
      EXPECT_TRUE(std::isnan(values[28]));
      engine.write(tensor.parts[2] + 5 * bytes_of(type), to_stored(std::array{10.0F}, type).data(),
                   bytes_of(type));
      EXPECT_EQ(values_of(engine, tensor)[25], 10);
    }
  }
}

TEST(GroupedTensor, WithoutMemoryItsPartsAreNullAndTheEngineHasTheError) {
  host::HostEngine engine(16);
  const GroupedTensor tensor = make_tensor(engine, grouped_form(true), DataType::Bf16);
  ASSERT_EQ(tensor.parts.size(), 3U);
  EXPECT_TRUE(std::all_of(tensor.parts.begin(), tensor.parts.end(),
                          [](const std::byte* part) { return part == nullptr; }));
  EXPECT_EQ(tensor.table, nullptr);
  ASSERT_TRUE(engine.error());
  EXPECT_EQ(engine.error()->message, "host engine: there is no memory for 60 bytes of experts");
}

TEST(ParameterRegistry, AHandleFindsItsParameterUntilItExpires) {
  ParameterRegistry registry;
  const ParameterHandle first = registry.add("one");
  const ParameterHandle second = registry.add("two");
  EXPECT_EQ(registry.size(), 2U);
  EXPECT_EQ(registry.name(first.index), "one");
  EXPECT_EQ(registry.name(second.index), "two");
  EXPECT_TRUE(registry.alive(first));
  EXPECT_TRUE(registry.alive(second));
  registry.expire(first.index);
  EXPECT_FALSE(registry.alive(first));
  EXPECT_TRUE(registry.alive(second));
  EXPECT_EQ(registry.name(first.index), "one");
}

// A parameter that takes another's place later is another object.
TEST(ParameterRegistry, AnExpiredHandleStaysExpiredThoughOthersAreTaken) {
  ParameterRegistry registry;
  const ParameterHandle old = registry.add("one");
  registry.expire(old.index);
  const ParameterHandle fresh = registry.handle(old.index);
  EXPECT_TRUE(registry.alive(fresh));
  EXPECT_FALSE(registry.alive(old));
  registry.expire(old.index);
  EXPECT_FALSE(registry.alive(fresh));
  EXPECT_FALSE(registry.alive(old));
}

}  // namespace
}  // namespace capo::run
