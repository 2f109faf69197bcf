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
  const Module layer = derived({.kind = ModuleKind::TransformerLayer});
  EXPECT_EQ(layer.shape, (ModuleShape{.tokens = 64, .hidden = 64}));
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
