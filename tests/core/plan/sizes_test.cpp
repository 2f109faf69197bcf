// Sizes of a layer's buffers: what follows from the shape, what has to be declared, and that a
// declaration wins.
//
// Of 1024 tokens, 512 columns in and 2048 out.

#include "core/plan/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace capo {
namespace {

using Sizes = std::array<std::int64_t, kBufferKinds>;

constexpr std::int64_t kKiB = 1024;
constexpr Aliases kCopies{};
constexpr Aliases kBoth{.input = true, .grad_output = true};

Module module_of(ModuleKind kind, DataType type) {
  return {.kind = kind, .dtype = type, .shape = {.tokens = 1024, .hidden = 512, .ffn = 2048}};
}

Module quantized(ModuleKind kind, Recipe recipe) {
  Module module = module_of(kind, DataType::Bf16);
  module.recipe = recipe;
  return module;
}

// In the order of BufferKind: static input, grad output, output, grad input, activations, operands,
// scratch, quantized weight.
TEST(Sizes, OfAProductFollowFromItsShape) {
  for (const auto kind :
       {ModuleKind::Linear, ModuleKind::GroupedLinear, ModuleKind::LayerNormLinear,
        ModuleKind::GroupedLinearOp, ModuleKind::BasicLinearOp}) {
    SCOPED_TRACE(name_of(kind));
    EXPECT_EQ(buffer_bytes(module_of(kind, DataType::Bf16), kBoth),
              (Sizes{1024 * kKiB, 4096 * kKiB, 4096 * kKiB, 1024 * kKiB, 0, 0, 0}));
    EXPECT_EQ(buffer_bytes(module_of(kind, DataType::Fp16), kCopies),
              (Sizes{1024 * kKiB, 4096 * kKiB, 4096 * kKiB, 1024 * kKiB, 1024 * kKiB, 4096 * kKiB,
                     4096 * kKiB}));
    EXPECT_EQ(buffer_bytes(module_of(kind, DataType::Fp32), kBoth),
              (Sizes{2048 * kKiB, 8192 * kKiB, 8192 * kKiB, 2048 * kKiB, 0, 0, 0}));
  }
}

// A copy is read along its columns: 512 of X and 2048 of dY, of 1024 elements each.
TEST(Sizes, OfQuantizedCopiesAreTheirElementsAndScales) {
  struct Row {
    Recipe recipe;
    std::int64_t input;
    std::int64_t gradient;
    std::int64_t weight;  ///< of 2048 lines of 512, and of 512 of 2048
  };
  for (const Row& row : {Row{Recipe::Delayed, 512 * kKiB + 4, 2048 * kKiB + 4, 2048 * kKiB + 8},
                         Row{Recipe::Current, 512 * kKiB + 4, 2048 * kKiB + 4, 2048 * kKiB + 8},
                         Row{Recipe::Block, 512 * kKiB + 512 * 8 * 4, 2048 * kKiB + 2048 * 8 * 4,
                             2048 * kKiB + 2 * 64 * 4},
                         Row{Recipe::Mxfp8, 512 * kKiB + 512 * 32, 2048 * kKiB + 2048 * 32,
                             2048 * kKiB + 2048 * 16 + 512 * 64},
                         Row{Recipe::Nvfp4, 256 * kKiB + 512 * 64 + 4, 1024 * kKiB + 2048 * 64 + 4,
                             1024 * kKiB + 2048 * 32 + 512 * 128 + 8}}) {
    SCOPED_TRACE(name_of(row.recipe));
    EXPECT_EQ(buffer_bytes(quantized(ModuleKind::Linear, row.recipe), kCopies),
              (Sizes{1024 * kKiB, 4096 * kKiB, 4096 * kKiB, 1024 * kKiB, row.input, row.gradient,
                     4096 * kKiB, row.weight}))
        << "tensors between modules are bf16, and a copy is widened again to be read";
  }
}

TEST(Sizes, OfAnUnquantizedCopyBesideQuantizedProductsAreThoseOfBf16) {
  Module module = quantized(ModuleKind::LayerNormLinear, Recipe::Current);
  module.flags.high_precision_backward = true;
  EXPECT_EQ(buffer_bytes(module, {.grad_output = true}),
            (Sizes{1024 * kKiB, 4096 * kKiB, 4096 * kKiB, 1024 * kKiB, 1024 * kKiB, 0, 0}));
}

TEST(Sizes, OfOneOperandThatIsCopied) {
  const Module module = module_of(ModuleKind::Linear, DataType::Bf16);
  EXPECT_EQ(buffer_bytes(module, {.grad_output = true}),
            (Sizes{1024 * kKiB, 4096 * kKiB, 4096 * kKiB, 1024 * kKiB, 1024 * kKiB, 0, 0}));
  EXPECT_EQ(
      buffer_bytes(module, {.input = true}),
      (Sizes{1024 * kKiB, 4096 * kKiB, 4096 * kKiB, 1024 * kKiB, 0, 4096 * kKiB, 4096 * kKiB}));
}

TEST(Sizes, OfAnMlpOrLayerComeOutAsWideAsTheyGoInAndKeepWhatIsDeclared) {
  for (const auto kind : {ModuleKind::LayerNormMlp, ModuleKind::GroupedMlp,
                          ModuleKind::TransformerLayer, ModuleKind::MoeLayer}) {
    SCOPED_TRACE(name_of(kind));
    Module module = module_of(kind, DataType::Bf16);
    EXPECT_EQ(buffer_bytes(module, {.grad_output = true}).has_value(), is_mlp(kind));
    module.bytes.activations = 34;
    EXPECT_EQ(buffer_bytes(module, {.grad_output = true}),
              (Sizes{1024 * kKiB, 1024 * kKiB, 1024 * kKiB, 1024 * kKiB, 34, 0, 0}));
    EXPECT_EQ(buffer_bytes(module, kCopies), (Sizes{1024 * kKiB, 1024 * kKiB, 1024 * kKiB,
                                                    1024 * kKiB, 34, 1024 * kKiB, 1024 * kKiB}));
  }
}

// W takes memory for a row of each choice, wherever it finds the gradient; a whole backward has
// none.
TEST(Sizes, OfARouterHaveRoomToSortTheGradient) {
  Module module = module_of(ModuleKind::MoeLayer, DataType::Bf16);
  module.bytes.activations = 34;
  module.shape.top_k = 3;
  for (const Aliases& aliases : {Aliases{.grad_output = true}, kCopies}) {
    EXPECT_EQ((*buffer_bytes(module, aliases))[6], 3 * 1024 * kKiB);
    EXPECT_EQ((*buffer_bytes(module, aliases, false))[6], 0);
  }
}

// A transformer layer sorts the gradient where it has experts, and it may say so in three ways.
TEST(Sizes, OfATransformerLayerSortTheGradientOnlyForExperts) {
  Module module = module_of(ModuleKind::TransformerLayer, DataType::Bf16);
  module.bytes.activations = 34;
  module.shape.groups.reset();
  const auto scratch = [&] { return (*buffer_bytes(module, {.grad_output = true}))[6]; };
  EXPECT_FALSE(has_router(module));
  EXPECT_EQ(scratch(), 0);
  module.shape.top_k = 3;
  EXPECT_TRUE(has_router(module));
  EXPECT_EQ(scratch(), 3 * 1024 * kKiB);
  module.mlp = MlpKind::Dense;
  EXPECT_FALSE(has_router(module));
  EXPECT_EQ(scratch(), 0);
  module.mlp = MlpKind::Experts;
  EXPECT_EQ(scratch(), 3 * 1024 * kKiB);
  module.shape.top_k.reset();
  EXPECT_EQ(scratch(), 0) << "nobody says how many a token chooses";
  module.mlp.reset();
  module.shape.groups = 2;
  EXPECT_TRUE(has_router(module));
  EXPECT_FALSE(has_router(Module{}));
}

// The weight is 2048 x 512 and is read in both directions; its 16 x 4 squares have a scale each.
TEST(Sizes, OfAWeightThatIsKeptQuantizedCountItsCopies) {
  Module module = quantized(ModuleKind::Linear, Recipe::Block);
  module.bytes.weight = 7;
  EXPECT_EQ(weight_bytes(module), 7) << "each microbatch has copies of its own";
  const std::int64_t row_wise = 2048 * 512 + 16 * 4 * 4;
  const std::int64_t column_wise = 2048 * 512 + 4 * 16 * 4;
  EXPECT_EQ((*buffer_bytes(module, kCopies))[7], row_wise + column_wise);
  module.weight_cache = WeightCache::Device;
  EXPECT_EQ((*buffer_bytes(module, kCopies))[7], 0);
  EXPECT_EQ(weight_bytes(module), 7 + row_wise + column_wise);
  module.flags.high_precision_backward = true;
  EXPECT_EQ(weight_bytes(module), 7 + row_wise) << "B reads the weight itself";
  module.bytes.quantized_weight = 5;
  EXPECT_EQ(weight_bytes(module), 12);
  module.recipe = Recipe::None;
  EXPECT_EQ(weight_bytes(module), 7);
}

TEST(Sizes, OfWeightsOfGroupsAndMlpsThatAreKeptQuantized) {
  Module module = quantized(ModuleKind::GroupedLinear, Recipe::Current);
  module.weight_cache = WeightCache::Device;
  EXPECT_EQ(weight_bytes(module), 0) << "nobody says how many groups there are";
  module.shape.groups = 3;
  EXPECT_EQ(weight_bytes(module), 3 * 2 * (2048 * 512 + 4));
  module.kind = ModuleKind::GroupedMlp;
  EXPECT_EQ(weight_bytes(module), 3 * 2 * (3 * 2048 * 512 + 2 * 4));
  module.kind = ModuleKind::Attention;
  EXPECT_EQ(weight_bytes(module), 0) << "nobody says how many heads it has";
  module.shape = {.hidden = 512, .heads = 4, .kv_heads = 2, .head_dim = 64};
  EXPECT_EQ(weight_bytes(module), 2 * ((512 + 256) * 512 + 2 * 4)) << "4 + 2 * 2 heads, and 4";
  module.kind = ModuleKind::TransformerLayer;
  EXPECT_EQ(weight_bytes(module), 0) << "its weights do not follow from a shape";
}

// Normed rows, or a copy of the input, what is before and after SwiGLU, and four bytes a row.
TEST(Sizes, OfAnMlpFollowFromItsShape) {
  const auto kept = [](ModuleKind kind, DataType type, Recipe recipe = Recipe::None,
                       bool high_precision = false) {
    Module module = module_of(kind, type);
    module.recipe = recipe;
    module.flags.high_precision_backward = high_precision;
    return (*buffer_bytes(module, {.grad_output = true}))[4];
  };
  EXPECT_EQ(kept(ModuleKind::LayerNormMlp, DataType::Bf16),
            1024 * (512 * 2 + 3 * 2048 * 2) + 1024 * 4);
  EXPECT_EQ(kept(ModuleKind::GroupedMlp, DataType::Bf16),
            1024 * (512 * 2 + 3 * 2048 * 2) + 1024 * 4);
  EXPECT_EQ(kept(ModuleKind::LayerNormMlp, DataType::Fp32),
            1024 * (512 * 4 + 3 * 2048 * 4) + 1024 * 4);
  EXPECT_EQ(kept(ModuleKind::LayerNormMlp, DataType::Bf16, Recipe::Current),
            1024 * (512 + 2 * 2048 * 2 + 2048) + 1024 * 4 + 2 * 4);
  EXPECT_EQ(kept(ModuleKind::LayerNormMlp, DataType::Bf16, Recipe::Current, true),
            kept(ModuleKind::LayerNormMlp, DataType::Bf16));
}

// 4 heads and 2 kv heads of 64 columns: 512 columns of qkv, 256 of y, and a number of each row and
// head.
TEST(Sizes, OfAnAttentionFollowFromItsHeads) {
  const auto sizes = [](DataType type, const Aliases& aliases, Recipe recipe = Recipe::None,
                        bool high_precision = false) {
    Module module{
        .kind = ModuleKind::Attention,
        .dtype = type,
        .recipe = recipe,
        .shape = {.tokens = 1024, .hidden = 512, .heads = 4, .kv_heads = 2, .head_dim = 64}};
    module.flags.high_precision_backward = high_precision;
    return buffer_bytes(module, aliases);
  };
  const std::int64_t kept = 1024 * (512 * 2 + 256 * 2 + 4 * 4);
  EXPECT_EQ(sizes(DataType::Bf16, kBoth),
            (Sizes{1024 * kKiB, 1024 * kKiB, 1024 * kKiB, 1024 * kKiB, kept, 0, 0}));
  EXPECT_EQ(sizes(DataType::Bf16, kCopies),
            (Sizes{1024 * kKiB, 1024 * kKiB, 1024 * kKiB, 1024 * kKiB, kept + 1024 * kKiB,
                   1024 * kKiB, 1024 * kKiB}));
  EXPECT_EQ((*sizes(DataType::Fp32, kBoth))[4], 1024 * (512 * 4 + 256 * 4 + 4 * 4));
  EXPECT_EQ((*sizes(DataType::Bf16, kCopies, Recipe::Current))[4],
            kept + 1024 * (256 + 512) + 2 * 4)
      << "quantized copies of what both products read";
  EXPECT_EQ((*sizes(DataType::Bf16, kCopies, Recipe::Current, true))[4], kept + 1024 * kKiB);
}

TEST(Sizes, FollowFromAConfigurationUnlessTheyAreDeclared) {
  Module module{.kind = ModuleKind::TransformerLayer, .dtype = DataType::Bf16};
  module.derived = {.input = 8, .output = 10, .activations = 34, .operands = 12, .weight = 99};
  EXPECT_EQ(buffer_bytes(module, {.grad_output = true}), (Sizes{8, 10, 10, 8, 34, 12, 0}))
      << "what is left to W is no copy that is widened";
  EXPECT_EQ(buffer_bytes(module, {.grad_output = true}, false), (Sizes{8, 10, 10, 8, 34, 0, 0}));
  EXPECT_EQ(weight_bytes(module), 99);
  module.bytes = {.activations = 35, .weight = 98};
  EXPECT_EQ(buffer_bytes(module, {.grad_output = true}), (Sizes{8, 10, 10, 8, 35, 12, 0}));
  EXPECT_EQ(weight_bytes(module), 98);
  EXPECT_EQ(weight_bytes({}), 0);
}

TEST(Sizes, NameTheMemberThatIsUndeclared) {
  const auto lack = [](ModuleKind kind, void (*change)(Module&)) {
    Module module = module_of(kind, DataType::Bf16);
    change(module);
    return undeclared_size(module, kCopies);
  };
  const auto nothing = [](Module&) {};
  EXPECT_EQ(lack(ModuleKind::Linear, nothing), "");
  EXPECT_EQ(lack(ModuleKind::Linear, [](Module& m) { m.kind.reset(); }), "kind");
  EXPECT_EQ(lack(ModuleKind::Linear, [](Module& m) { m.dtype.reset(); }), "dtype");
  EXPECT_EQ(lack(ModuleKind::Linear, [](Module& m) { m.shape.tokens.reset(); }), "shape.tokens");
  EXPECT_EQ(lack(ModuleKind::Linear, [](Module& m) { m.shape.hidden.reset(); }), "shape.hidden");
  EXPECT_EQ(lack(ModuleKind::Linear, [](Module& m) { m.shape.ffn.reset(); }), "shape.ffn");
  EXPECT_EQ(lack(ModuleKind::GroupedMlp, [](Module& m) { m.shape.ffn.reset(); }), "shape.ffn");
  EXPECT_EQ(lack(ModuleKind::Linear,
                 [](Module& m) {
                   m.bytes.output = 64;
                   m.shape.ffn.reset();
                 }),
            "shape.ffn")
      << "of the gradient that W reads a copy of";
  const auto beside_its_ends = [&](void (*change)(Module&)) {
    Module module = module_of(ModuleKind::GroupedMlp, DataType::Bf16);
    module.bytes = {.input = 1, .output = 1};
    change(module);
    return undeclared_size(module, {.grad_output = true});
  };
  EXPECT_EQ(beside_its_ends(nothing), "");
  EXPECT_EQ(beside_its_ends([](Module& m) { m.shape.tokens.reset(); }), "shape.tokens");
  EXPECT_EQ(beside_its_ends([](Module& m) { m.shape.hidden.reset(); }), "shape.hidden");
  const auto of_heads = [](void (*change)(Module&), const Aliases& aliases) {
    Module module = module_of(ModuleKind::Attention, DataType::Bf16);
    module.shape = {.tokens = 8, .hidden = 8, .heads = 2, .kv_heads = 1, .head_dim = 4};
    change(module);
    return undeclared_size(module, aliases);
  };
  for (const Aliases& aliases : {kCopies, kBoth}) {
    EXPECT_EQ(of_heads(nothing, aliases), "");
    EXPECT_EQ(of_heads([](Module& m) { m.shape.heads.reset(); }, aliases), "shape.heads");
    EXPECT_EQ(of_heads([](Module& m) { m.shape.kv_heads.reset(); }, aliases), "shape.kv_heads");
    EXPECT_EQ(of_heads([](Module& m) { m.shape.head_dim.reset(); }, aliases), "shape.head_dim");
  }
  EXPECT_EQ(lack(ModuleKind::MoeLayer, nothing), "bytes.activations");
  EXPECT_EQ(lack(ModuleKind::MoeLayer, [](Module& m) { m.bytes.activations = 1; }), "");
  EXPECT_EQ(lack(ModuleKind::MoeLayer, [](Module& m) { m.lacks = "expert_ffn"; }),
            "configuration.expert_ffn");
}

TEST(Sizes, ThatAreDeclaredWin) {
  Module module = module_of(ModuleKind::Linear, DataType::Bf16);
  module.bytes = {.input = 8, .output = 10, .activations = 34, .operands = 12, .weight = 99};
  EXPECT_EQ(buffer_bytes(module, kCopies), (Sizes{8, 10, 10, 8, 34, 12, 10}));
  EXPECT_EQ(buffer_bytes(module, kBoth), (Sizes{8, 10, 10, 8, 34, 12, 10}))
      << "kept beside what is no copy";
  module.bytes.operands = 0;
  EXPECT_EQ(buffer_bytes(module, kCopies), (Sizes{8, 10, 10, 8, 34, 0, 0}))
      << "nothing to make readable";
}

TEST(Sizes, MayBeDeclaredWithoutAShape) {
  const Module module{.bytes = {.input = 8, .output = 8, .activations = 34, .operands = 12}};
  EXPECT_EQ(buffer_bytes(module, kCopies), (Sizes{8, 8, 8, 8, 34, 12, 8}));
}

TEST(Sizes, AreUnknownWhereAnythingIsMissing) {
  const auto without = [](void (*take_away)(Module&)) {
    Module module = module_of(ModuleKind::Linear, DataType::Bf16);
    take_away(module);
    return buffer_bytes(module, kCopies);
  };
  EXPECT_EQ(without([](Module& m) { m.dtype.reset(); }), std::nullopt);
  EXPECT_EQ(without([](Module& m) { m.kind.reset(); }), std::nullopt);
  EXPECT_EQ(without([](Module& m) { m.shape.tokens.reset(); }), std::nullopt);
  EXPECT_EQ(without([](Module& m) { m.shape.hidden.reset(); }), std::nullopt);
  EXPECT_EQ(without([](Module& m) { m.shape.ffn.reset(); }), std::nullopt);
}

TEST(Sizes, BeyondSixtyFourBitsAreTheLargestNumber) {
  Module module = module_of(ModuleKind::Linear, DataType::Bf16);
  module.shape.tokens = std::int64_t{1} << 40;
  module.shape.hidden = std::int64_t{1} << 22;
  constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(buffer_bytes(module, kBoth)->front(), kLargest) << "2^63";
  module.shape.hidden = std::int64_t{1} << 30;
  EXPECT_EQ(buffer_bytes(module, kBoth)->front(), kLargest) << "2^71";
  module.shape.hidden.reset();
  EXPECT_EQ(buffer_bytes(module, kBoth), std::nullopt);
}

TEST(Sizes, OfWhatADelayedProductKeepsAreUnknownWithoutItsColumns) {
  Module module = module_of(ModuleKind::Linear, DataType::Bf16);
  module.shape.ffn.reset();
  module.bytes.output = 64;
  EXPECT_EQ(buffer_bytes(module, kCopies), std::nullopt);
  EXPECT_TRUE(buffer_bytes(module, kBoth));
}

}  // namespace
}  // namespace capo
