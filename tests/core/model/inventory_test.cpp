// The inventory of a layer, counted by hand from the sizes of its configuration.

#include "core/model/inventory.h"

#include "core/model/ready_models.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace capo {
namespace {

// 2 sequences of 32 tokens, 64 columns, 4 heads of 16 with 2 of keys, experts of 32 columns, 2 of 4
// on this rank and 2 for a token.
ModelConfiguration tiny() {
  return ready_model_named("tiny")->configuration;
}

Inventory inventory(const ModelConfiguration& of, ModuleKind kind, MlpKind mlp,
                    const LayerTypes& types = {}) {
  auto made = inventory_of(of, kind, mlp, types);
  EXPECT_TRUE(made);
  return made ? *std::move(made) : Inventory{};
}

std::int64_t kept(const ModelConfiguration& of, ModuleKind kind, MlpKind mlp,
                  const LayerTypes& types = {}) {
  return inventory(of, kind, mlp, types).bytes(TensorUse::Kept);
}

constexpr std::int64_t kTokens = 64;
constexpr std::int64_t kNorm = kTokens * (4 + 64 * 2);  // inverse deviations and normed rows
constexpr std::int64_t kDense = kTokens * (2 * 192 * 2 + 192 * 2);
constexpr std::int64_t kAttention = kNorm + kTokens * (8 * 16 * 2 + 64 * 2 + 4 * 4);
constexpr std::int64_t kRows = 128;
constexpr std::int64_t kExperts = kRows * (4 + 2 * 32 * 2 + 32 * 2);
constexpr std::int64_t kRouter = kTokens * (4 * 4 + 2 * 8 + 2 * 4);
constexpr std::int64_t kShared = kTokens * (2 * 32 * 2 + 32 * 2);
constexpr std::int64_t kMoe = kNorm + kRouter + kShared + kRows * (8 + 64 * 2) + kExperts;

TEST(Inventory, OfADenseLayerKeepWhatItsModulesRead) {
  EXPECT_EQ(kept(tiny(), ModuleKind::LayerNormMlp, MlpKind::Dense), kNorm + kDense);
  EXPECT_EQ(kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense),
            kAttention + kTokens * 64 * 2 + kNorm + kDense);
}

TEST(Inventory, OfALayerWithExpertsKeepTheRowsThatAreSentToThem) {
  EXPECT_EQ(kept(tiny(), ModuleKind::MoeLayer, MlpKind::Experts), kMoe);
  EXPECT_EQ(kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Experts),
            kAttention + kTokens * 64 * 2 + kMoe);
  EXPECT_EQ(kept(tiny(), ModuleKind::GroupedMlp, MlpKind::Experts), kRows * 64 * 2 + kExperts);
}

TEST(Inventory, HaveEndsOfTokensOrOfTheExpertsRows) {
  const Inventory layer = inventory(tiny(), ModuleKind::MoeLayer, MlpKind::Experts);
  EXPECT_EQ(layer.bytes(TensorUse::Input), kTokens * 64 * 2);
  EXPECT_EQ(layer.bytes(TensorUse::Output), kTokens * 64 * 2);
  EXPECT_EQ(layer.tensors.front().use, TensorUse::Input);
  const Inventory experts = inventory(tiny(), ModuleKind::GroupedMlp, MlpKind::Experts);
  EXPECT_EQ(experts.bytes(TensorUse::Input), kRows * 64 * 2);
}

TEST(Inventory, LeaveTheGradientOfTheExpertsRowsToWeightGradients) {
  for (const ModuleKind kind :
       {ModuleKind::TransformerLayer, ModuleKind::MoeLayer, ModuleKind::GroupedMlp}) {
    EXPECT_EQ(inventory(tiny(), kind, MlpKind::Experts).bytes(TensorUse::Left), kRows * 64 * 2);
  }
  EXPECT_EQ(inventory(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense).bytes(TensorUse::Left),
            0);
}

TEST(Inventory, OfAnMlpKeepWhatItKeepsByItself) {
  for (const LayerTypes& types :
       {LayerTypes{DataType::Bf16}, LayerTypes{DataType::Fp16}, LayerTypes{DataType::Fp32},
        LayerTypes{DataType::Bf16, Recipe::Current}, LayerTypes{DataType::Fp16, Recipe::Block},
        LayerTypes{DataType::Bf16, Recipe::Mxfp8}, LayerTypes{DataType::Bf16, Recipe::Nvfp4}}) {
    EXPECT_EQ(kept(tiny(), ModuleKind::LayerNormMlp, MlpKind::Dense, types),
              kept_by_mlp({64, 64, 192}, types));
    EXPECT_EQ(kept(tiny(), ModuleKind::GroupedMlp, MlpKind::Experts, types),
              kept_by_mlp({128, 64, 32}, types));
  }
}

TEST(Inventory, QuantizedKeepOperandsOfAByteBesideWhatOthersRead) {
  const auto dense = [](Recipe recipe) {
    return kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense, {DataType::Bf16, recipe});
  };
  // Normed rows twice and activated rows halve; attention's output stands there twice. Each of the
  // four copies has a scale.
  EXPECT_EQ(dense(Recipe::None) - dense(Recipe::Current),
            kTokens * (64 + 64 + 192) - kTokens * 64 - 4 * 4);
  // 64 elements of a column are two blocks, which are padded to four, and columns to 128.
  EXPECT_EQ(dense(Recipe::Mxfp8) - (dense(Recipe::Current) - 4 * 4), (128 * 3 + 256) * 4);
  EXPECT_EQ(
      inventory(tiny(), ModuleKind::LayerNormMlp, MlpKind::Dense, {DataType::Bf16, Recipe::Current})
          .bytes(TensorUse::Parameter),
      (64 + 3 * 64 * 192) * 2)
      << "parameters stay bf16";
}

TEST(Inventory, QuantizeTheWeightsOfProductsButTheRouters) {
  const Inventory dense = inventory(tiny(), ModuleKind::LayerNormMlp, MlpKind::Dense);
  EXPECT_EQ(dense.quantized_weights(Recipe::Current, WeightCopies::Both),
            2 * (3 * 64 * 192) + 4 * 4);
  EXPECT_EQ(dense.quantized_weights(Recipe::Current, WeightCopies::Forward), 3 * 64 * 192 + 2 * 4);
  EXPECT_EQ(dense.quantized_weights(Recipe::None, WeightCopies::Both), 0);
  const auto experts = [](ModuleKind kind) {
    return inventory(tiny(), kind, MlpKind::Experts)
        .quantized_weights(Recipe::Current, WeightCopies::Forward);
  };
  EXPECT_EQ(experts(ModuleKind::GroupedMlp), 2 * (3 * 64 * 32 + 2 * 4)) << "two groups of them";
  EXPECT_EQ(experts(ModuleKind::MoeLayer), experts(ModuleKind::GroupedMlp) + 3 * 64 * 32 + 2 * 4)
      << "a shared expert, and no router";
}

TEST(Inventory, AreDividedByTensorParallelism) {
  ModelConfiguration of = tiny();
  of.tensor_parallel = 2;
  EXPECT_EQ(inventory(of, ModuleKind::TransformerLayer, MlpKind::Dense).bytes(TensorUse::Input),
            kTokens / 2 * 64 * 2)
      << "the sequence is divided";
  EXPECT_EQ(2 * kept(of, ModuleKind::TransformerLayer, MlpKind::Dense),
            kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense));
  const Inventory half = inventory(of, ModuleKind::LayerNormMlp, MlpKind::Dense);
  EXPECT_EQ(half.gathered_bytes, 2 * kTokens / 2 * 64 * 2) << "rows of the other rank, twice";
  EXPECT_EQ(half.parameters(), 64 + 3 * 64 * 192 / 2) << "norms are on every rank";
}

TEST(Inventory, OfExpertsThatAreNotDividedSeeOnlyTheirRanksTokens) {
  ModelConfiguration of = tiny();
  of.tensor_parallel = 2;
  EXPECT_EQ(inventory(of, ModuleKind::GroupedMlp, MlpKind::Experts).bytes(TensorUse::Input),
            kRows * 64 * 2)
      << "half of each expert, and the rows of both ranks";
  of.expert_tensor_parallel = 1;
  EXPECT_EQ(inventory(of, ModuleKind::GroupedMlp, MlpKind::Experts).bytes(TensorUse::Input),
            kRows / 2 * 64 * 2);
}

TEST(Inventory, AreThoseOfAShareOfTheSequenceUnderContextParallelism) {
  ModelConfiguration of = tiny();
  of.context_parallel = 2;
  const Inventory layer = inventory(of, ModuleKind::TransformerLayer, MlpKind::Dense);
  EXPECT_EQ(2 * layer.bytes(TensorUse::Kept),
            kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense));
  EXPECT_EQ(layer.attention->queries, 32);
  EXPECT_EQ(layer.attention->keys, 32) << "of the whole sequence";
  EXPECT_EQ(layer.parameters(),
            inventory(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense).parameters());
}

TEST(Inventory, OfExpertsAreAsManyAsARankHolds) {
  const Inventory half = inventory(tiny(), ModuleKind::GroupedMlp, MlpKind::Experts);
  EXPECT_EQ(half.parameters(), 2 * 3 * 64 * 32);
  ModelConfiguration all = tiny();
  all.expert_parallel = 1;
  EXPECT_EQ(inventory(all, ModuleKind::GroupedMlp, MlpKind::Experts).parameters(), 4 * 3 * 64 * 32);
}

TEST(Inventory, HaveRowsUpToTheCapacityOfARanksExperts) {
  ModelConfiguration of = tiny();
  of.capacity_factor = 1.26;
  EXPECT_EQ(inventory(of, ModuleKind::GroupedMlp, MlpKind::Experts).bytes(TensorUse::Input),
            162 * 64 * 2)
      << "161.28 rows, rounded up";
}

TEST(Inventory, ThatAreRecomputedAreLeftByTheBackward) {
  ModelConfiguration of = tiny();
  of.recompute = Recompute::Full;
  const Inventory layer = inventory(of, ModuleKind::TransformerLayer, MlpKind::Dense);
  EXPECT_EQ(layer.bytes(TensorUse::Kept), 0);
  EXPECT_EQ(layer.bytes(TensorUse::Left),
            kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense));
}

TEST(Inventory, WithNormedHeadsKeepTheseBeforeTheirNorms) {
  ModelConfiguration of = tiny();
  of.qk_norm = true;
  EXPECT_EQ(kept(of, ModuleKind::TransformerLayer, MlpKind::Dense) -
                kept(tiny(), ModuleKind::TransformerLayer, MlpKind::Dense),
            kTokens * (6 * 16 * 2 + 6 * 4));
}

// The attention of each of the 61 layers in config.json has, counted by hand, 7168*1536 + 1536 +
// 1536*128*192 + 7168*576 + 512 + 512*128*256 + 128*128*7168.
TEST(Inventory, OfLatentAttentionAreNarrowProducts) {
  const ModelConfiguration of = ready_model_named("deepseek-v3")->configuration;
  const Inventory layer = inventory(of, ModuleKind::TransformerLayer, MlpKind::Dense);
  EXPECT_EQ(layer.parameters(), 187'107'328 + 2 * 7168 + 3 * 7168 * 18432);
  EXPECT_EQ(layer.attention->qk_size, 192);
  EXPECT_EQ(layer.attention->value_size, 128);
}

TEST(Inventory, HaveProductsOfAsManyRowsAsTheyRead) {
  const Inventory layer = inventory(tiny(), ModuleKind::TransformerLayer, MlpKind::Experts);
  std::string products;
  for (const LayerProduct& product : layer.products) {
    products += std::string(product.name) + ' ' + std::to_string(product.rows) + 'x' +
                std::to_string(product.in) + 'x' + std::to_string(product.out) + '\n';
  }
  EXPECT_EQ(products,
            "qkv 64x64x128\nprojection 64x64x64\nrouter 64x64x4\nshared fc1 64x64x64\n"
            "shared fc2 64x32x64\nexperts' fc1 128x64x64\nexperts' fc2 128x32x64\n");
  EXPECT_EQ(layer.dispatched_bytes, 128 * 64 * 2);
  EXPECT_EQ(layer.gathered_bytes, 0);
}

TEST(Inventory, NameTheFirstMemberThatIsUndeclared) {
  const auto lack = [](ModuleKind kind, MlpKind mlp, void (*take_away)(ModelConfiguration&)) {
    ModelConfiguration of = tiny();
    take_away(of);
    const auto made = inventory_of(of, kind, mlp, {});
    return made ? std::string() : made.error();
  };
  const auto hidden = [](ModelConfiguration& of) { of.hidden.reset(); };
  const auto sequence = [](ModelConfiguration& of) { of.sequence.reset(); };
  const auto heads = [](ModelConfiguration& of) { of.heads.reset(); };
  const auto ffn = [](ModelConfiguration& of) { of.ffn.reset(); };
  const auto top_k = [](ModelConfiguration& of) { of.top_k.reset(); };
  EXPECT_EQ(lack(ModuleKind::LayerNormMlp, MlpKind::Dense, hidden), "hidden");
  EXPECT_EQ(lack(ModuleKind::LayerNormMlp, MlpKind::Dense, sequence), "sequence");
  EXPECT_EQ(lack(ModuleKind::TransformerLayer, MlpKind::Dense, heads), "heads");
  EXPECT_EQ(lack(ModuleKind::LayerNormMlp, MlpKind::Dense, heads), "") << "it has no attention";
  EXPECT_EQ(lack(ModuleKind::LayerNormMlp, MlpKind::Dense, ffn), "ffn");
  EXPECT_EQ(lack(ModuleKind::MoeLayer, MlpKind::Experts, ffn), "") << "it has no dense MLP";
  EXPECT_EQ(lack(ModuleKind::MoeLayer, MlpKind::Experts, top_k), "top_k");
}

TEST(Inventory, BeyondSixtyFourBitsAreTheLargestNumber) {
  ModelConfiguration of = tiny();
  of.sequence = of.micro_batch = of.hidden = 0x7fffffff;
  of.head_size = 16;
  EXPECT_EQ(kept(of, ModuleKind::TransformerLayer, MlpKind::Experts), INT64_MAX);
}

TEST(UsualMlp, HasExpertsIfTheKindOrTheConfigurationHasSome) {
  EXPECT_EQ(usual_mlp(tiny(), ModuleKind::TransformerLayer), MlpKind::Experts);
  EXPECT_EQ(usual_mlp({}, ModuleKind::TransformerLayer), MlpKind::Dense);
  EXPECT_EQ(usual_mlp(tiny(), ModuleKind::LayerNormMlp), MlpKind::Dense);
  EXPECT_EQ(usual_mlp({}, ModuleKind::GroupedMlp), MlpKind::Experts);
  EXPECT_EQ(usual_mlp({}, ModuleKind::MoeLayer), MlpKind::Experts);
}

}  // namespace
}  // namespace capo
