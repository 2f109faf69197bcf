// Modules take from the configuration what they do not declare.

#include "core/model/derive.h"

#include "core/model/inventory.h"
#include "core/model/ready_models.h"

#include <gtest/gtest.h>

#include <utility>

namespace capo {
namespace {

Module derived(
    Module module, void (*change)(ModelConfiguration&) = [](ModelConfiguration&) {}) {
  Model model{.configuration = ready_model_named("tiny")->configuration};
  change(*model.configuration);
  model.modules.list = {std::move(module)};
  derive(model);
  const Model once = model;
  derive(model);
  EXPECT_EQ(model, once) << "twice is once";
  return model.modules.list.front();
}

TEST(Derive, GivesAModuleItsShapeTypeAndBytes) {
  const Module experts = derived({.kind = ModuleKind::GroupedMlp});
  EXPECT_EQ(experts.dtype, DataType::Bf16);
  EXPECT_EQ(experts.shape, (ModuleShape{.tokens = 128, .hidden = 64, .ffn = 32, .groups = 2}));
  EXPECT_EQ(experts.derived.weight, 2 * 3 * 64 * 32 * 2);
  EXPECT_EQ(experts.derived.activations, kept_by_mlp({128, 64, 32}, {}));
  EXPECT_EQ(experts.derived.operands, 128 * 64 * 2);
  EXPECT_EQ(experts.bytes, ModuleBytes{}) << "they stand apart from what is declared";
  EXPECT_EQ(experts.lacks, "");

  const Module mlp = derived({.kind = ModuleKind::LayerNormMlp});
  EXPECT_EQ(mlp.shape, (ModuleShape{.tokens = 64, .hidden = 64, .ffn = 192}));
}

// A rank's experts get as many rows as its tokens choose.
TEST(Derive, GivesALayerTheSizesOfItsHalves) {
  const auto own_experts = [](ModelConfiguration& of) { of.shared_experts = 0; };
  const Module layer = derived({.kind = ModuleKind::TransformerLayer}, own_experts);
  EXPECT_EQ(layer.unrun, "");
  EXPECT_EQ(layer.shape, (ModuleShape{.tokens = 64,
                                      .hidden = 64,
                                      .ffn = 32,
                                      .groups = 2,
                                      .top_k = 2,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 16,
                                      .sequence = 32}));
  const Module dense =
      derived({.kind = ModuleKind::TransformerLayer, .mlp = MlpKind::Dense}, own_experts);
  EXPECT_EQ(dense.shape, (ModuleShape{.tokens = 64,
                                      .hidden = 64,
                                      .ffn = 192,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 16,
                                      .sequence = 32}));
  EXPECT_FALSE(has_router(dense));
  const Module experts = derived({.kind = ModuleKind::MoeLayer}, own_experts);
  EXPECT_EQ(experts.shape,
            (ModuleShape{.tokens = 64, .hidden = 64, .ffn = 32, .groups = 2, .top_k = 2}));
}

TEST(Derive, TellsWhatOfALayerCannotBeRun) {
  const auto unrun = [](ModuleKind kind, void (*change)(ModelConfiguration&)) {
    return derived({.kind = kind}, change).unrun;
  };
  constexpr auto kAsItIs = [](ModelConfiguration&) {};
  constexpr ModuleKind kLayer = ModuleKind::TransformerLayer;
  EXPECT_EQ(unrun(kLayer, kAsItIs), "shared experts");
  EXPECT_EQ(unrun(ModuleKind::MoeLayer, kAsItIs), "shared experts");
  EXPECT_EQ(unrun(ModuleKind::GroupedMlp, kAsItIs), "");
  EXPECT_EQ(unrun(ModuleKind::LayerNormMlp, kAsItIs), "");
  EXPECT_EQ(unrun(kLayer, [](ModelConfiguration& of) { of.qk_norm = true; }),
            "norms of queries and keys");
  EXPECT_EQ(unrun(kLayer, [](ModelConfiguration& of) { of.tensor_parallel = 2; }),
            "tensor_parallel above 1");
  EXPECT_EQ(unrun(kLayer, [](ModelConfiguration& of) { of.context_parallel = 2; }),
            "context_parallel above 1");
  EXPECT_EQ(unrun(ModuleKind::LayerNormMlp, [](ModelConfiguration& of) { of.tensor_parallel = 2; }),
            "tensor_parallel above 1");
  EXPECT_EQ(unrun(ModuleKind::GroupedMlp, [](ModelConfiguration& of) { of.tensor_parallel = 2; }),
            "")
      << "its share of the experts is all that it has";
  EXPECT_EQ(unrun(ModuleKind::MoeLayer,
                  [](ModelConfiguration& of) {
                    of.shared_experts = 0;
                    of.capacity_factor = 1.5;
                  }),
            "a capacity_factor");
  EXPECT_EQ(unrun(ModuleKind::MoeLayer,
                  [](ModelConfiguration& of) {
                    of.shared_experts = 0;
                    of.expert_parallel = 4;
                  }),
            "more top_k than experts on a rank");
  EXPECT_EQ(unrun(kLayer,
                  [](ModelConfiguration& of) {
                    of.latent = {
                        .q_rank = 8, .kv_rank = 8, .nope_size = 8, .rope_size = 8, .value_size = 8};
                  }),
            "latent attention");
}

TEST(Derive, TakesTheMlpThatAModuleDeclares) {
  const Module moe = derived({.kind = ModuleKind::TransformerLayer});
  const Module dense = derived({.kind = ModuleKind::TransformerLayer, .mlp = MlpKind::Dense});
  EXPECT_EQ(derived({.kind = ModuleKind::TransformerLayer, .mlp = MlpKind::Experts}).derived,
            moe.derived);
  EXPECT_NE(dense.derived.weight, moe.derived.weight);
}

TEST(Derive, LeavesAModuleWithAShapeOfItsOwn) {
  const Module module{.kind = ModuleKind::GroupedMlp, .shape = {.tokens = 5}};
  Module with_type = module;
  with_type.dtype = DataType::Bf16;
  EXPECT_EQ(derived(module), with_type);
}

TEST(Derive, LeavesOneProductWhichNoConfigurationTells) {
  const Module linear = derived({.kind = ModuleKind::Linear});
  EXPECT_EQ(linear, (Module{.kind = ModuleKind::Linear, .dtype = DataType::Bf16}));
  EXPECT_EQ(derived({}), (Module{.dtype = DataType::Bf16}));
}

TEST(Derive, TakesTheTypeThatAModuleDeclares) {
  const Module wide = derived({.kind = ModuleKind::LayerNormMlp, .dtype = DataType::Fp32});
  EXPECT_EQ(wide.dtype, DataType::Fp32);
  EXPECT_EQ(wide.derived.input, 64 * 64 * 4);
}

TEST(Derive, TellsWhichMemberIsUndeclared) {
  const Module typeless =
      derived({.kind = ModuleKind::MoeLayer}, [](ModelConfiguration& of) { of.dtype.reset(); });
  EXPECT_EQ(typeless.lacks, "dtype");
  const Module module = derived({.kind = ModuleKind::MoeLayer},
                                [](ModelConfiguration& of) { of.expert_ffn.reset(); });
  EXPECT_EQ(module.lacks, "expert_ffn");
  EXPECT_EQ(module.derived, ModuleBytes{});
}

TEST(Derive, ChangesNothingWithoutAConfiguration) {
  Model model;
  model.modules.list = {{.kind = ModuleKind::GroupedMlp}};
  const Model before = model;
  derive(model);
  EXPECT_EQ(model, before);
}

}  // namespace
}  // namespace capo
