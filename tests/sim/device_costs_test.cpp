// Costs from a data sheet, worked out by hand for small models.

#include "sim/device_costs.h"

#include "core/model/derive.h"
#include "core/model/inventory.h"
#include "core/model/ready_models.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace capo {
namespace {

// A device of round numbers, whose memory and links are so fast that products alone take time.
constexpr DeviceFigures kFlops{.name = "flops",
                               .source = "made up",
                               .bf16_flops = 1e12,
                               .fp8_flops = 2e12,
                               .fp32_flops = 0.5e12,
                               .memory = 1e30,
                               .links = 1e30,
                               .network = 1e30};
// One whose products take no time.
constexpr DeviceFigures kBytes{.name = "bytes",
                               .source = "made up",
                               .bf16_flops = 1e30,
                               .fp8_flops = 1e30,
                               .fp32_flops = 1e30,
                               .memory = 1e30,
                               .links = 1e9,
                               .network = 1e8};
constexpr Efficiency kAll{.products = 1, .attention = 1, .memory = 1, .links = 1};

Model model_of(
    Module module, void (*change)(ModelConfiguration&) = [](ModelConfiguration&) {}) {
  Model model{.configuration = ready_model_named("tiny")->configuration};
  change(*model.configuration);
  model.modules.list = {std::move(module)};
  derive(model);
  return model;
}

ModuleCost cost(Model model, const DeviceFigures& device) {
  EXPECT_TRUE(price(model, device, kAll));
  return model.modules.list.front().cost;
}

// 2 sequences of 32 tokens, 64 columns, 192 in the middle.
constexpr double kMlpFlops = 2.0 * 64 * 64 * (2 * 192 + 192);

TEST(DeviceCosts, OfProductsAreFlopsOverTheRate) {
  const ModuleCost mlp = cost(model_of({.kind = ModuleKind::LayerNormMlp}), kFlops);
  EXPECT_NEAR(*mlp.forward, kMlpFlops / 1e12 * 1e6, 1e-9);
  EXPECT_NEAR(*mlp.backward, *mlp.forward, 1e-9);
  EXPECT_NEAR(*mlp.weight, *mlp.forward, 1e-9);
  EXPECT_FALSE(mlp.dispatch);
  const auto of_type = [](DataType type) {
    return *cost(model_of({.kind = ModuleKind::LayerNormMlp, .dtype = type}), kFlops).forward;
  };
  const Module quantized{.kind = ModuleKind::LayerNormMlp, .recipe = Recipe::Block};
  EXPECT_NEAR(*cost(model_of(quantized), kFlops).forward, *mlp.forward / 2, 1e-9);
  EXPECT_NEAR(of_type(DataType::Fp32), *mlp.forward * 2, 1e-9);
}

// Four heads of 16 columns, of 64 queries with 32 keys each, half of them masked.
TEST(DeviceCosts, OfAttentionGrowTwoAndAHalfTimesBackward) {
  const auto layer = [](ModuleKind kind, std::optional<MlpKind> mlp) {
    return cost(model_of({.kind = kind, .mlp = mlp}), kFlops);
  };
  const ModuleCost whole = layer(ModuleKind::TransformerLayer, MlpKind::Dense);
  constexpr double kProducts = kMlpFlops + 2.0 * 64 * 64 * (128 + 64);
  constexpr double kAttention = 0.5 * 2 * 64 * 32 * 4 * (16 + 16);
  EXPECT_NEAR(*whole.forward, (kProducts + kAttention) / 1e6, 1e-9);
  EXPECT_NEAR(*whole.backward, (kProducts + 2.5 * kAttention) / 1e6, 1e-9);
  EXPECT_NEAR(*whole.weight, kProducts / 1e6, 1e-9);
}

TEST(DeviceCosts, OfABackwardThatRecomputesHaveAForwardInFront) {
  const Module layer{.kind = ModuleKind::TransformerLayer, .mlp = MlpKind::Dense};
  const ModuleCost once = cost(model_of(layer), kFlops);
  const ModuleCost again =
      cost(model_of(layer, [](ModelConfiguration& of) { of.recompute = Recompute::Full; }), kFlops);
  EXPECT_NEAR(*again.backward, *once.backward + *once.forward, 1e-9);
  EXPECT_NEAR(*again.forward, *once.forward, 1e-9);
}

TEST(DeviceCosts, OfProductsThatWaitForMemoryAreTheirBytes) {
  DeviceFigures slow = kFlops;
  slow.memory = 1e6;
  const Model model = model_of({.kind = ModuleKind::LayerNormMlp});
  const ModuleBytes& bytes = model.modules.list.front().derived;
  const double weights = static_cast<double>(*bytes.weight) - 64 * 2;  // but for the norm's
  const double rows = 2 * 64 * (64 + 384 + 192 + 64);
  const double kept = static_cast<double>(2 * *bytes.activations + *bytes.input + *bytes.output);
  EXPECT_NEAR(*cost(model, slow).forward, weights + rows + kept, 1e-6);
}

// 64 rows through two products, 64 to 384 and 192 to 64; scales of 4 bytes for 128 elements.
TEST(DeviceCosts, OfQuantizationAreTheBytesThatItReadsAndWrites) {
  DeviceFigures slow = kBytes;
  slow.memory = 1e6;
  const auto without = [&](Module module) {
    const Model model = model_of(std::move(module));
    const ModuleBytes& bytes = model.modules.list.front().derived;
    const double kept = static_cast<double>(2 * *bytes.activations + *bytes.input + *bytes.output);
    const double products =
        static_cast<double>(*bytes.weight) - 64 * 2 +
        static_cast<double>(operand_bytes({DataType::Bf16, Recipe::Block}, 64, 64) +
                            operand_bytes({DataType::Bf16, Recipe::Block}, 64, 384) +
                            operand_bytes({DataType::Bf16, Recipe::Block}, 64, 192) +
                            operand_bytes({DataType::Bf16, Recipe::Block}, 64, 64));
    const ModuleCost of = cost(model, slow);
    EXPECT_NEAR(*of.quantize_forward, *of.forward - kept - products, 1e-6);
    EXPECT_NEAR(of.quantize_backward.value_or(0), *of.backward - kept - products, 1e-6);
    return std::pair(*of.forward - kept - products, *of.backward - kept - products);
  };
  Module module{.kind = ModuleKind::LayerNormMlp, .recipe = Recipe::Block};
  module.weight_cache = WeightCache::Device;
  const double rows = 64 * 64 * (2 + 1) + 64 * 1 * 4 + 64 * 192 * (2 + 1) + 64 * 2 * 4;
  const auto [forward, backward] = without(module);
  EXPECT_NEAR(forward, rows, 1e-6);
  const double gradients = 64 * 384 * (2 + 2) + (64 * 3 + 384 * 1) * 4 +  // 384 columns, 64 rows
                           64 * 64 * (2 + 2) + (64 * 1 + 64 * 1) * 4;
  EXPECT_NEAR(backward, gradients, 1e-6);
  module.weight_cache.reset();
  const double weights = 64 * (384 + 192) * (2 + 2) + 4 * (3 * 4 + 1 * 4 + 1 * 4 + 2 * 4);
  EXPECT_NEAR(without(module).first, rows + weights, 1e-6) << "of each microbatch";
  module.flags.high_precision_backward = true;
  EXPECT_NEAR(without(module).second, 0, 1e-6);
}

TEST(DeviceCosts, OfAQuantizationAreAPartOfWhatIsPricedAlone) {
  const Module block{.kind = ModuleKind::LayerNormMlp, .recipe = Recipe::Block};
  DeviceFigures slow = kBytes;
  slow.memory = 1e6;
  const ModuleCost once = cost(model_of(block), slow);
  const ModuleCost again =
      cost(model_of(block, [](ModelConfiguration& of) { of.recompute = Recompute::Full; }), slow);
  EXPECT_NEAR(*again.quantize_backward, *once.quantize_backward + *once.quantize_forward, 1e-6);
  Module stated = block;
  stated.cost.forward = 1;
  EXPECT_FALSE(cost(model_of(stated), slow).quantize_forward) << "its author says what it is";
  EXPECT_TRUE(cost(model_of(stated), slow).quantize_backward);
  EXPECT_FALSE(cost(model_of({.kind = ModuleKind::LayerNormMlp}), slow).quantize_forward);
}

// A rank sends 128 rows of 128 bytes, half of them to the other rank.
TEST(DeviceCosts, OfExchangesAreBytesOverLinksOrNetwork) {
  const Module moe{.kind = ModuleKind::MoeLayer};
  const ModuleCost near = cost(model_of(moe), kBytes);
  EXPECT_NEAR(*near.dispatch, 128 * 128 * 0.5 / 1e9 * 1e6, 1e-9);
  EXPECT_EQ(near.combine, near.dispatch);
  const ModuleCost alone =
      cost(model_of(moe, [](ModelConfiguration& of) { of.expert_parallel = 1; }), kBytes);
  EXPECT_EQ(*alone.dispatch, 0);
  const ModuleCost far = cost(model_of(moe,
                                       [](ModelConfiguration& of) {
                                         of.experts = 16;
                                         of.expert_parallel = 16;
                                       }),
                              kBytes);
  EXPECT_NEAR(*far.dispatch, 128 * 128 * 0.5 / 1e8 * 1e6, 1e-9) << "half leaves the node";
}

TEST(DeviceCosts, OfTensorParallelismAreExchangesOfRows) {
  const ModuleCost halved = cost(model_of({.kind = ModuleKind::LayerNormMlp},
                                          [](ModelConfiguration& of) { of.tensor_parallel = 2; }),
                                 kBytes);
  EXPECT_NEAR(*halved.forward, 2 * 32 * 64 * 2 / 1e9 * 1e6, 1e-9);
}

TEST(DeviceCosts, OfTransfersAreTheOutputOverTheNetwork) {
  Model model = model_of({.kind = ModuleKind::TransformerLayer});
  const auto origins = price(model, kBytes, {.links = 0.5});
  ASSERT_TRUE(origins);
  EXPECT_EQ(model.transfer.bytes, 64 * 64 * 2);
  EXPECT_NEAR(*model.transfer.bandwidth, 0.5 * 1e8 / 1e6, 1e-9);
  EXPECT_EQ(origins->back().task, "transfer");
  model.transfer = {.latency = 3};
  EXPECT_TRUE(price(model, kBytes, kAll));
  EXPECT_EQ(model.transfer, (TransferCost{.latency = 3})) << "what is declared stays";
}

TEST(DeviceCosts, ThatAModuleDeclaresStay) {
  Module module{.name = "mlp", .kind = ModuleKind::LayerNormMlp};
  module.cost.forward = 7;
  Model model = model_of(module);
  const auto origins = price(model, kFlops, kAll);
  EXPECT_EQ(model.modules.list.front().cost.forward, 7);
  EXPECT_TRUE(model.modules.list.front().cost.backward);
  EXPECT_EQ(origins->front(), (CostOrigin{"mlp", "forward", 7, "the model file"}));
}

TEST(DeviceCosts, SayWhereTheyComeFrom) {
  Model model{.configuration = ready_model_named("mixtral-8x7b")->configuration};
  model.modules.list = {{.name = "moe", .kind = ModuleKind::GroupedMlp}};
  derive(model);
  const auto origins = price(model, known_devices().front(), {});
  ASSERT_TRUE(origins);
  EXPECT_EQ(origins->front().module, "moe");
  EXPECT_EQ(origins->front().task, "forward");
  // 8192 rows, 3 products of 4096 x 14336 each: 2.89 TFLOP at 0.6 of 989 TFLOP/s.
  EXPECT_TRUE(origins->front().why.starts_with(
      "products 4.86 ms (2.89 TFLOP at 0.6 of 989 TFLOP/s), memory "))
      << origins->front().why;
}

TEST(DeviceCosts, NameWhatTheyLack) {
  const auto refused = [](Model model) { return price(model, kFlops, kAll).error(); };
  EXPECT_NE(refused({}).find("no `configuration`"), std::string::npos);
  EXPECT_EQ(refused(model_of({.name = "fc", .kind = ModuleKind::Linear})),
            "module `fc` (linear) does not follow from the configuration, so it needs a `cost`");
  EXPECT_EQ(refused(model_of({.name = "x"})),
            "module `x` has no `kind`, so its times do not follow");
  EXPECT_EQ(refused(model_of({.name = "moe", .kind = ModuleKind::MoeLayer},
                             [](ModelConfiguration& of) { of.top_k.reset(); })),
            "module `moe` has no `configuration.top_k`, so its times do not follow");
}

TEST(DeviceCosts, KnowThreeDevicesAndTheSourceOfTheirFigures) {
  std::string names;
  for (const DeviceFigures& device : known_devices()) {
    names += std::string(device.name) + ' ';
    EXPECT_NE(device.source.find("data sheet"), std::string::npos);
    EXPECT_GT(device.fp8_flops, device.bf16_flops);
  }
  EXPECT_EQ(names, "h100 h200 b200 ");
}

TEST(Efficiency, IsAListOfShares) {
  EXPECT_EQ(*read_efficiency("products=0.5,links=1"),
            (Efficiency{.products = 0.5, .attention = 0.5, .memory = 0.8, .links = 1}));
  EXPECT_EQ(*read_efficiency("attention=0.001,memory=0.9"),
            (Efficiency{.products = 0.6, .attention = 0.001, .memory = 0.9, .links = 0.8}));
  for (const char* wrong :
       {"", "products", "products=0", "products=1.1", "flops=0.5", "products=0.5,", "memory=nan"}) {
    EXPECT_FALSE(read_efficiency(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace capo
