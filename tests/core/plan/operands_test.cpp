// What each module keeps for its weight gradient, cell by cell of the table that was read off
// TransformerEngine and partly seen on an H200: the static buffer itself, or a copy.

#include "core/plan/operands.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string_view>

namespace capo {

// For messages of the tests.
void PrintTo(const Aliases& aliases, std::ostream* out) {
  *out << (aliases.input ? "input " : "") << (aliases.grad_output ? "grad output" : "");
}

namespace {

constexpr Aliases kNone{};
constexpr Aliases kInput{.input = true};
constexpr Aliases kGradOutput{.grad_output = true};
constexpr Aliases kBoth{.input = true, .grad_output = true};

Aliases of(ModuleKind kind, DataType type, const std::function<void(Module&)>& change = {}) {
  Module module{.kind = kind, .dtype = type};
  if (change) change(module);
  return aliases_of(module).value();
}

Aliases of(ModuleKind kind, Recipe recipe, const std::function<void(Module&)>& change = {}) {
  return of(kind, DataType::Bf16, [&](Module& module) {
    module.recipe = recipe;
    if (change) change(module);
  });
}

constexpr Recipe kQuantizing[] = {Recipe::Delayed, Recipe::Current, Recipe::Block, Recipe::Mxfp8,
                                  Recipe::Nvfp4};

struct Row {
  ModuleKind kind;
  Aliases unquantized;
  Aliases quantized;
  Aliases overridden;  ///< quantized, with backward in high precision
};

constexpr Row kTable[] = {
    {ModuleKind::Linear, kBoth, kNone, kBoth},
    {ModuleKind::GroupedLinear, kBoth, kNone, kBoth},
    {ModuleKind::GroupedLinearOp, kBoth, kNone, kBoth},
    {ModuleKind::BasicLinearOp, kBoth, kNone, kBoth},
    {ModuleKind::LayerNormLinear, kGradOutput, kNone, kGradOutput},
    {ModuleKind::LayerNormMlp, kGradOutput, kNone, kGradOutput},
    {ModuleKind::TransformerLayer, kGradOutput, kNone, kGradOutput},
    {ModuleKind::MoeLayer, kGradOutput, kNone, kGradOutput},
    {ModuleKind::GroupedMlp, kNone, kNone, kNone},
    {ModuleKind::Attention, kBoth, kNone, kBoth},
};

TEST(Operands, AreTheStaticBuffersOrCopiesAsTheTableSays) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(name_of(row.kind));
    for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
      EXPECT_EQ(of(row.kind, type), row.unquantized);
    }
    for (const Recipe recipe : kQuantizing) {
      EXPECT_EQ(of(row.kind, recipe), row.quantized);
      EXPECT_EQ(
          of(row.kind, recipe, [](Module& module) { module.flags.high_precision_backward = true; }),
          row.overridden);
    }
    EXPECT_EQ(of(row.kind, Recipe::None), row.unquantized);
    EXPECT_EQ(aliases_of({.kind = row.kind}), row.unquantized) << "no type is no quantized one";
  }
}

// The second product of an attention reads what forward made, whatever the first one reads.
TEST(Operands, OnlyAnAttentionMakesSomethingBesidesTheInputThatWReads) {
  for (const ModuleKind kind : kModuleKinds) {
    EXPECT_EQ(makes_for_weight({.kind = kind}), kind == ModuleKind::Attention) << name_of(kind);
  }
  EXPECT_FALSE(makes_for_weight({.name = "m"}));
}

TEST(Operands, AnInputThatIsGatheredOrNotContiguousIsCopied) {
  for (const auto kind : {ModuleKind::Linear, ModuleKind::GroupedLinear, ModuleKind::Attention,
                          ModuleKind::GroupedLinearOp, ModuleKind::BasicLinearOp}) {
    SCOPED_TRACE(name_of(kind));
    EXPECT_EQ(of(kind, DataType::Bf16, [](Module& m) { m.flags.gathered_input = true; }),
              kGradOutput);
    EXPECT_EQ(of(kind, DataType::Bf16, [](Module& m) { m.flags.contiguous_input = false; }),
              kGradOutput);
  }
}

TEST(Operands, AGradientThatIsGatheredIsCopied) {
  const auto gathered = [](Module& m) { m.flags.gathered_grad_output = true; };
  EXPECT_EQ(of(ModuleKind::Linear, DataType::Bf16, gathered), kInput);
  EXPECT_EQ(of(ModuleKind::LayerNormLinear, DataType::Bf16, gathered), kNone);
}

// It is quantized again at backward.
TEST(Operands, ASavedOriginalInputIsStillACopy) {
  EXPECT_EQ(of(ModuleKind::Linear, Recipe::Current,
               [](Module& m) { m.flags.save_original_input = true; }),
            kNone);
}

// The sizes of the groups are read again by the product for the weight, quantized or not.
TEST(Operands, SplitsThatAreAnInputOfTheGraphAreReadAgain) {
  for (const auto kind : {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp}) {
    SCOPED_TRACE(name_of(kind));
    EXPECT_EQ(of(kind, Recipe::Current, [](Module& m) { m.splits = Splits::Input; }), kInput);
    EXPECT_EQ(of(kind, DataType::Bf16,
                 [](Module& m) {
                   m.splits = Splits::Input;
                   m.flags.gathered_input = true;
                 }),
              kBoth);
    for (const Splits splits : {Splits::Host, Splits::Device}) {
      EXPECT_EQ(of(kind, Recipe::Current, [&](Module& m) { m.splits = splits; }), kNone);
    }
  }
  // The fused kernels read offsets that they have just worked out.
  EXPECT_EQ(
      of(ModuleKind::GroupedMlp, Recipe::Current, [](Module& m) { m.splits = Splits::Input; }),
      kNone);
  EXPECT_EQ(of(ModuleKind::Linear, Recipe::Current, [](Module& m) { m.splits = Splits::Input; }),
            kNone)
      << "it has no groups";
}

bool keeps(ModuleKind kind, Recipe recipe, const std::function<void(Module&)>& change = {}) {
  Module module{.kind = kind, .dtype = DataType::Bf16, .recipe = recipe};
  if (change) change(module);
  return keeps_quantized_weight(module);
}

TEST(QuantizedWeights, AreKeptForBackwardByEachMicrobatch) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(name_of(row.kind));
    EXPECT_FALSE(keeps(row.kind, Recipe::None));
    for (const Recipe recipe : kQuantizing) EXPECT_TRUE(keeps(row.kind, recipe));
  }
}

TEST(QuantizedWeights, AreNotKeptByAMicrobatchWhereTheModuleKeepsThem) {
  for (const WeightCache cache : {WeightCache::Device, WeightCache::Python}) {
    EXPECT_FALSE(keeps(ModuleKind::Linear, Recipe::Block,
                       [&](Module& module) { module.weight_cache = cache; }));
  }
}

TEST(QuantizedWeights, AreNotKeptWhereBackwardReadsNone) {
  const auto wide = [](Module& module) { module.flags.high_precision_backward = true; };
  EXPECT_FALSE(keeps(ModuleKind::LayerNormMlp, Recipe::Block, wide));
  EXPECT_FALSE(keeps(ModuleKind::TransformerLayer, Recipe::Block,
                     [](Module& module) { module.remakes = true; }));
  const auto first = [](Module& module) { module.flags.input_requires_grad = false; };
  EXPECT_FALSE(keeps(ModuleKind::Linear, Recipe::Block, first));
  EXPECT_FALSE(keeps(ModuleKind::GroupedLinear, Recipe::Block, first));
  EXPECT_TRUE(keeps(ModuleKind::LayerNormLinear, Recipe::Block, first)) << "its norm needs it";
  EXPECT_TRUE(keeps(ModuleKind::GroupedMlp, Recipe::Block, first)) << "so does the first product";
}

TEST(Operands, OfAModuleThatDoesNotSayItsKindAreUnknown) {
  EXPECT_FALSE(keeps_quantized_weight({.recipe = Recipe::Block}));
  EXPECT_EQ(aliases_of({.name = "m", .recipe = Recipe::Mxfp8}), std::nullopt);
}

}  // namespace
}  // namespace capo
