// Buffers and their numbers: one number each, and all that layers have in common.

#include "core/plan/buffers.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace capo {

void PrintTo(const Buffer& buffer, std::ostream* out) {
  *out << name_of(buffer.kind) << " of rank " << buffer.rank << ", chunk " << buffer.chunk
       << ", layer " << buffer.layer << ", microbatch " << buffer.microbatch;
}

namespace {

Layers list_of(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

// Ranks by the layers of their chunks.
Schedule schedule_of(const std::vector<std::vector<std::int64_t>>& ranks) {
  Schedule schedule;
  for (const auto& layers : ranks) {
    RankOrder& rank = schedule.ranks.emplace_back();
    rank.chunks = static_cast<std::int32_t>(layers.size());
    rank.layers = list_of(layers);
  }
  return schedule;
}

BufferTable one_chunk(const Layers& layers, const ModuleTable& modules = {},
                      const PlanOptions& options = {}) {
  Schedule schedule;
  schedule.ranks.push_back({.chunks = 1, .layers = layers});
  return {schedule, 1, modules, options};
}

// Every buffer in turn has the next number, and is found by it.
void expect_numbered(const Schedule& schedule, std::int32_t microbatches,
                     const ModuleTable& modules = {}, std::size_t kinds = kUnquantizedKinds) {
  const BufferTable table(schedule, microbatches, modules, {});
  ASSERT_EQ(table.kinds(), kinds);
  BufferId next = 0;
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(table.ranks()); ++r) {
    const auto& layers = schedule.ranks[static_cast<std::size_t>(r)].layers.values;
    ASSERT_EQ(table.chunks(r), layers.size());
    for (std::int32_t c = 1; c <= static_cast<std::int32_t>(layers.size()); ++c) {
      ASSERT_EQ(table.layers(r, c), layers[static_cast<std::size_t>(c) - 1]);
      for (std::int32_t l = 0; l < table.layers(r, c); ++l) {
        for (std::int32_t m = 0; m < microbatches; ++m) {
          for (std::size_t kind = 0; kind < kinds; ++kind) {
            const Buffer buffer{.rank = r,
                                .chunk = c,
                                .layer = l,
                                .microbatch = m,
                                .kind = static_cast<BufferKind>(kind)};
            ASSERT_EQ(table.id(r, c, l, m, buffer.kind), next);
            ASSERT_EQ(table.at(next), buffer);
            ++next;
          }
        }
      }
    }
  }
  EXPECT_EQ(table.size(), next);
  EXPECT_EQ(BufferTable::count(schedule, microbatches, modules), next);
}

TEST(Buffers, AreNumberedOneByOneWhateverTheShape) {
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int run = 0; run < 300; ++run) {
    std::vector<std::vector<std::int64_t>> ranks(1 + static_cast<std::size_t>(below(5)));
    std::string shape;
    for (auto& layers : ranks) {
      layers.resize(static_cast<std::size_t>(below(4)));
      for (std::int64_t& of_chunk : layers) shape += std::to_string(of_chunk = below(4)) + " ";
      shape += "| ";
    }
    SCOPED_TRACE(shape);
    expect_numbered(schedule_of(ranks), static_cast<std::int32_t>(1 + below(4)));
    if (HasFatalFailure()) return;
  }
}

TEST(Buffers, AreNumberedPastRanksAndChunksWithoutLayers) {
  expect_numbered(schedule_of({{}, {0, 2, 0, 1, 0}, {}, {0}, {3}, {}}), 2);
  expect_numbered(schedule_of({{}, {0, 0}}), 3);
  expect_numbered(schedule_of({{}}), 1);
}

Module quantizing() {
  Module module{.name = "m", .kind = ModuleKind::Linear, .recipe = Recipe::Block};
  module.shape = {.tokens = 8, .hidden = 128, .ffn = 256};
  module.dtype = DataType::Bf16;
  return module;
}

ModuleTable every_layer_of(const Module& module) {
  return {.list = {module}, .layers = {{{0}}}};
}

TEST(Buffers, AreEightWhereAMicrobatchQuantizesItsWeight) {
  expect_numbered(schedule_of({{2, 1}, {3}}), 2, every_layer_of(quantizing()), 8);
  Module kept = quantizing();
  kept.weight_cache = WeightCache::Device;
  expect_numbered(schedule_of({{2, 1}, {3}}), 2, every_layer_of(kept), 7);
}

TEST(Buffers, OfAQuantizedWeightAreAUnitWhereSizesAreUnknown) {
  Module module = quantizing();
  module.shape = {};
  const BufferTable table = one_chunk({}, every_layer_of(module));
  EXPECT_FALSE(table.sized());
  EXPECT_TRUE(table.facts(0, 1, 0).keeps_quantized_weight);
  EXPECT_EQ(table.facts(0, 1, 0).bytes[7], 1);
  EXPECT_EQ(one_chunk({}).facts(0, 1, 0).bytes[7], 0);
}

TEST(Buffers, AreCountedWithoutBeingMade) {
  const Schedule schedule = schedule_of({{1'000'000'000, 3}, {}});
  EXPECT_EQ(BufferTable::count(schedule, 2, {}), 1'000'000'003ULL * 2 * 7);
  const Schedule beyond =
      schedule_of(std::vector<std::vector<std::int64_t>>(3, {INT64_MAX / 2, INT64_MAX / 2}));
  EXPECT_GE(BufferTable::count(beyond, INT32_MAX, {}), std::uint64_t{kNoBuffer});
}

TEST(Buffers, OfAChunkAreOfOneLayerUnlessItSaysMore) {
  for (const Layers::Form form : {Layers::Form::Unstated, Layers::Form::Null}) {
    EXPECT_EQ(one_chunk({.form = form}).layers(0, 1), 1);
  }
  Schedule schedule;
  schedule.ranks.push_back({.chunks = 3, .layers = {.form = Layers::Form::Count, .values = {2}}});
  schedule.ranks.push_back({.chunks = 2, .layers = list_of({4})});
  const BufferTable table(schedule, 1, {}, {});
  for (std::int32_t chunk = 1; chunk <= 3; ++chunk) EXPECT_EQ(table.layers(0, chunk), 2);
  EXPECT_EQ(table.layers(1, 1), 4);
  EXPECT_EQ(table.layers(1, 2), 1) << "a list that is too short says nothing of the last";
}

TEST(Buffers, AreOneUnitWhereNothingIsDeclared) {
  const BufferTable table = one_chunk({});
  EXPECT_FALSE(table.sized());
  EXPECT_FALSE(table.aliases_declared());
  const LayerFacts& facts = table.facts(0, 1, 0);
  EXPECT_EQ(facts.aliases, (Aliases{.input = true, .grad_output = true})) << "the worst";
  EXPECT_EQ(facts.bytes, (std::array<std::int64_t, kBufferKinds>{1, 1, 1, 1, 0, 0, 0}));
}

TEST(Buffers, OfCopiesAreAUnitMore) {
  const BufferTable table = one_chunk({}, {}, {.aliases = Aliases{}});
  EXPECT_TRUE(table.aliases_declared());
  EXPECT_EQ(table.facts(0, 1, 0).bytes,
            (std::array<std::int64_t, kBufferKinds>{1, 1, 1, 1, 1, 1, 1}));
}

Module module_of(std::optional<std::int64_t> tokens, std::optional<std::int64_t> hidden,
                 std::optional<std::int64_t> ffn) {
  return {.kind = ModuleKind::Linear,
          .dtype = DataType::Bf16,
          .shape = {.tokens = tokens, .hidden = hidden, .ffn = ffn}};
}

TEST(Buffers, AreInBytesOnlyIfAllAre) {
  ModuleTable modules{.list = {module_of(2, 3, 5)}, .layers = {{{0}}}};
  EXPECT_TRUE(one_chunk(list_of({2}), modules).sized());
  EXPECT_EQ(one_chunk(list_of({2}), modules).bytes({.chunk = 1, .layer = 1}), 2 * 3 * 2);
  modules.list.push_back(module_of(2, 3, std::nullopt));
  modules.layers = {{{0, 1}}};
  const BufferTable table = one_chunk(list_of({2}), modules);
  EXPECT_FALSE(table.sized());
  EXPECT_EQ(table.bytes({.chunk = 1, .layer = 0}), 1);
}

TEST(Buffers, TakeWhatIsDeclaredOfAllBeforeWhatTheirModuleKeeps) {
  const ModuleTable modules{.list = {module_of(2, 3, 5)}, .layers = {{{0}}}};
  EXPECT_EQ(one_chunk({}, modules).facts(0, 1, 0).aliases,
            (Aliases{.input = true, .grad_output = true}));
  EXPECT_EQ(one_chunk({}, modules, {.aliases = Aliases{.input = true}}).facts(0, 1, 0).aliases,
            Aliases{.input = true});
}

// The key of a layer of one module beside that of a layer of another.
bool inputs_alike(const Module& a, const Module& b) {
  const BufferTable table = one_chunk(list_of({2}), {.list = {a, b}, .layers = {{{0, 1}}}});
  return table.facts(0, 1, 0).input_key == table.facts(0, 1, 1).input_key;
}
bool outputs_alike(const Module& a, const Module& b) {
  const BufferTable table = one_chunk(list_of({2}), {.list = {a, b}, .layers = {{{0, 1}}}});
  return table.facts(0, 1, 0).output_key == table.facts(0, 1, 1).output_key;
}

TEST(Buffers, AreAlikeToTeByShapeAndType) {
  EXPECT_TRUE(inputs_alike(module_of(2, 3, 5), module_of(2, 3, 7)));
  EXPECT_FALSE(outputs_alike(module_of(2, 3, 5), module_of(2, 3, 7)));
  EXPECT_FALSE(inputs_alike(module_of(2, 3, 5), module_of(2, 4, 5)));
  EXPECT_TRUE(outputs_alike(module_of(2, 3, 5), module_of(2, 4, 5)));
  EXPECT_FALSE(inputs_alike(module_of(2, 3, 5), module_of(1, 3, 5)));
  EXPECT_FALSE(outputs_alike(module_of(2, 3, 5), module_of(1, 3, 5)));
  Module other = module_of(2, 3, 5);
  other.dtype = DataType::Fp32;
  EXPECT_FALSE(inputs_alike(module_of(2, 3, 5), other));
  other.dtype = DataType::Bf16;
  other.recipe = Recipe::Mxfp8;
  EXPECT_TRUE(inputs_alike(module_of(2, 3, 5), other)) << "between modules it is bf16 as well";
  EXPECT_TRUE(outputs_alike(module_of(2, 3, 5), other));
  EXPECT_TRUE(inputs_alike({}, {}));
}

// The strictest that may be meant: an undeclared shape might be that of any other layer.
TEST(Buffers, AreNotToldApartByWhatOneOfThemLeavesUndeclared) {
  const Module a = module_of(2, 3, 5);
  EXPECT_TRUE(inputs_alike(a, {}));
  EXPECT_TRUE(outputs_alike(a, {}));
  Module typeless = module_of(2, 3, 5);
  typeless.dtype.reset();
  EXPECT_TRUE(inputs_alike(a, typeless));
  typeless.shape.hidden = 4;
  EXPECT_FALSE(inputs_alike(a, typeless)) << "whatever its type";
  EXPECT_TRUE(outputs_alike(a, typeless));

  Module sized;
  sized.bytes.input = 2 * 3 * 2;
  EXPECT_TRUE(inputs_alike(a, sized));
  sized.bytes.input = 2 * 3 * 2 + 1;
  EXPECT_FALSE(inputs_alike(a, sized)) << "of another size";

  const BufferTable three =
      one_chunk(list_of({3}), {.list = {a, module_of(1, 3, 5), {}}, .layers = {{{0, 1, 2}}}});
  EXPECT_EQ(three.facts(0, 1, 0).input_key, three.facts(0, 1, 1).input_key)
      << "the third may be as either of two that differ";
}

TEST(Buffers, OfAnMlpComeOutAsTheyWentIn) {
  Module mlp = module_of(2, 5, 9);
  mlp.kind = ModuleKind::LayerNormMlp;
  EXPECT_TRUE(outputs_alike(module_of(2, 3, 5), mlp));
}

// A declared size that says the same as the shape makes no other tensor of it.
TEST(Buffers, AreAlikeWhetherTheirSizeIsDeclaredOrFollows) {
  Module declared = module_of(2, 3, 5);
  declared.bytes.input = 2 * 3 * 2;
  declared.bytes.output = 2 * 5 * 2;
  EXPECT_TRUE(inputs_alike(module_of(2, 3, 5), declared));
  EXPECT_TRUE(outputs_alike(module_of(2, 3, 5), declared));
  declared.bytes.input = 2 * 3 * 2 + 1;
  EXPECT_FALSE(inputs_alike(module_of(2, 3, 5), declared));
  EXPECT_FALSE(inputs_alike({.bytes = {.input = 1}}, {.bytes = {.input = 2}}));
  EXPECT_TRUE(inputs_alike({.bytes = {.input = 2}}, {.bytes = {.input = 2}}));
}

// Orders of layers: which of them begin a chunk of the model is declared beside them.
TEST(Buffers, KnowWhichLayersHandTheirGradientOn) {
  Schedule schedule;
  schedule.ranks.push_back({.chunks = 6});
  const BufferTable table(schedule, 1, {}, {.model_chunks = {1, 3, 2}});
  const std::vector<bool> expected{true, true, false, false, true, false};
  for (std::int32_t chunk = 1; chunk <= 6; ++chunk) {
    EXPECT_EQ(table.facts(0, chunk, 0).hands_on, expected[static_cast<std::size_t>(chunk) - 1]);
  }
  EXPECT_FALSE(one_chunk({}).facts(0, 1, 0).hands_on);
}

TEST(Buffers, KnowTheWeightsOfTheirModules) {
  Module module = module_of(2, 3, 5);
  module.bytes.weight = 60;
  const BufferTable table = one_chunk(list_of({2}), {.list = {module, {}}, .layers = {{{0, 1}}}});
  EXPECT_EQ(table.facts(0, 1, 0).weight_bytes, 60);
  EXPECT_EQ(table.facts(0, 1, 1).weight_bytes, 0);
}

TEST(Buffers, OfARankLieWithinAddressesTogether) {
  const Module empty{.bytes = {.input = 0, .output = 0, .activations = 0, .operands = 0}};
  Module module = empty;
  module.bytes.input = std::int64_t{1} << 55;
  const auto beyond = [&](std::int32_t microbatches) {
    Schedule schedule;
    schedule.ranks = {{.chunks = 1}, {.chunks = 1}, {.chunks = 1}};
    const ModuleTable modules{.list = {empty, module}, .layers = {{{0}}, {{1}}, {{1}}}};
    return BufferTable(schedule, microbatches, modules, {.alignment = 256}).beyond_addresses();
  };
  EXPECT_EQ(beyond(1), std::nullopt) << "a static input and a grad input: 2^56";
  EXPECT_EQ(beyond(2), 1);
  EXPECT_EQ(beyond(0), std::nullopt);
  module.bytes.weight = 1;
  EXPECT_EQ(beyond(1), 1);
  module.bytes.input = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(beyond(1), 1);
  module.bytes.weight = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(beyond(1), 1);
}

TEST(Buffers, HaveNames) {
  EXPECT_EQ(name_of(BufferKind::StaticInput), "static input");
  EXPECT_EQ(name_of(BufferKind::Scratch), "scratch");
  EXPECT_EQ(name_of(BufferKind::QuantizedWeight), "quantized weight");
}

}  // namespace
}  // namespace capo
