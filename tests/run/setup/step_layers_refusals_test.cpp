// A step that cannot be run is refused before anything runs, in a sentence that names the module.

#include "run/setup/step_layers.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

// The step is taken as declared: no size is filled in.
std::string refusal_of(const std::string& order, const CheckOptions& options) {
  auto plan = admit_unchecked(typed(order), options);
  if (const auto* why = std::get_if<NotVerified>(&plan)) return "not admitted, " + words_of(*why);
  const auto layers = StepLayers::of(std::get<UncheckedPlan>(plan).step());
  return layers ? "" : layers.error();
}

std::string refusal_of(const Module& module) {
  return refusal_of("[1, -1]", every_layer(module));
}

// With all bytes, so that there is a plan however little else is said.
Module declared() {
  Module module = small(ModuleKind::GroupedLinear);
  module.name = "experts";
  module.bytes = {.input = 4096, .output = 4096, .activations = 8192, .operands = 4096};
  return module;
}

TEST(StepLayersRefusals, ADeclaredModuleIsNotRefused) {
  EXPECT_EQ(refusal_of(declared()), "");
}

TEST(StepLayersRefusals, WhatIsMissingIsNamed) {
  const auto without = [](auto drop) {
    Module module = declared();
    drop(module);
    return refusal_of(module);
  };
  EXPECT_EQ(without([](Module& m) { m.kind.reset(); }), "module `experts` does not say its kind");
  EXPECT_EQ(without([](Module& m) { m.dtype.reset(); }), "module `experts` does not say its dtype");
  EXPECT_EQ(without([](Module& m) { m.shape.tokens.reset(); }),
            "module `experts` does not say its tokens");
  EXPECT_EQ(without([](Module& m) { m.shape.hidden.reset(); }),
            "module `experts` does not say its hidden");
  EXPECT_EQ(without([](Module& m) { m.shape.ffn.reset(); }),
            "module `experts` does not say its ffn");
  EXPECT_EQ(without([](Module& m) { m.shape.groups.reset(); }),
            "module `experts` does not say its groups");
}

Module attention() {
  Module module = small(ModuleKind::Attention);
  module.name = "attn";
  module.bytes.activations = 8192;
  return module;
}

TEST(StepLayersRefusals, AnAttentionNeedsItsHeadsAndNoFfn) {
  EXPECT_EQ(refusal_of(attention()), "");
  const auto without = [](std::optional<std::int64_t> ModuleShape::*size) {
    Module module = attention();
    module.shape.*size = std::nullopt;
    return refusal_of(module);
  };
  EXPECT_EQ(without(&ModuleShape::heads), "module `attn` does not say its heads");
  EXPECT_EQ(without(&ModuleShape::kv_heads), "module `attn` does not say its kv_heads");
  EXPECT_EQ(without(&ModuleShape::head_dim), "module `attn` does not say its head_dim");
  EXPECT_EQ(without(&ModuleShape::sequence), "module `attn` does not say its sequence");
  EXPECT_EQ(without(&ModuleShape::ffn), "");
}

// A reader of model.json refuses these at their place; here they come from a program.
TEST(StepLayersRefusals, AnAttentionsHeadsAndSequencesComeOutEven) {
  Module module = attention();
  module.shape.kv_heads = 3;
  EXPECT_EQ(refusal_of(module),
            "module `attn` has 4 heads, which is no multiple of its 3 kv_heads");
  module.shape.kv_heads = 8;
  EXPECT_EQ(refusal_of(module),
            "module `attn` has 4 heads, which is no multiple of its 8 kv_heads");
  module = attention();
  module.shape.sequence = 16;
  EXPECT_EQ(refusal_of(module), "module `attn` has 8 tokens, which are no whole sequences of 16");
  module.shape.sequence = 8;
  EXPECT_EQ(refusal_of(module), "");
}

TEST(StepLayersRefusals, AnAttentionAsLargeAsNoRunIsRefused) {
  Module module = attention();
  module.bytes = {.input = 4096, .output = 4096, .activations = 8192, .operands = 4096};
  module.shape.heads = module.shape.kv_heads = std::int64_t{1} << 20;
  module.shape.head_dim = std::int64_t{1} << 20;
  EXPECT_EQ(refusal_of(module),
            "module `attn` takes more than 2^44 bytes, which is more than capo runs");
}

TEST(StepLayersRefusals, ALinearNeedsNoGroups) {
  Module module = declared();
  module.kind = ModuleKind::Linear;
  module.shape.groups.reset();
  EXPECT_EQ(refusal_of(module), "");
}

TEST(StepLayersRefusals, ATransformerLayerHasTheSizesOfBothItsHalves) {
  Module module = declared();
  module.kind = ModuleKind::TransformerLayer;
  module.splits.reset();
  module.bytes.activations = 1 << 20;
  module.flags.bias = false;
  EXPECT_EQ(refusal_of(module), "module `experts` does not say its heads");
  module.shape.heads = 4;
  module.shape.kv_heads = 3;
  module.shape.head_dim = 2;
  module.shape.sequence = module.shape.tokens;
  EXPECT_EQ(refusal_of(module), "module `experts` does not say its top_k");
  module.shape.top_k = 4;
  EXPECT_EQ(refusal_of(module), "module `experts` has 3 groups, and top_k 4 is more");
  module.shape.top_k = 3;
  EXPECT_EQ(refusal_of(module),
            "module `experts` has 4 heads, which is no multiple of its 3 kv_heads");
  module.shape.kv_heads = 2;
  EXPECT_EQ(refusal_of(module), "");
  module.flags.bias = true;
  EXPECT_EQ(refusal_of(module),
            "module `experts` has biases, and capo runs no biases of experts behind a router");
  module.mlp = MlpKind::Dense;
  EXPECT_EQ(refusal_of(module),
            "module `experts` is dense, and its shape declares groups of experts");
  module.shape.groups.reset();
  EXPECT_EQ(refusal_of(module),
            "module `experts` is dense, and its shape declares top_k of experts");
  module.shape.top_k.reset();
  EXPECT_EQ(refusal_of(module), "");
  module.shape.ffn.reset();
  EXPECT_EQ(refusal_of(module), "module `experts` does not say its ffn");
}

TEST(StepLayersRefusals, ARouterChoosesAmongTheGroupsThatThereAre) {
  Module module = declared();
  module.kind = ModuleKind::MoeLayer;
  module.splits.reset();
  module.flags.bias = false;
  module.bytes.activations = 1 << 20;
  EXPECT_EQ(refusal_of(module), "module `experts` does not say its top_k");
  module.shape.top_k = *module.shape.groups;
  EXPECT_EQ(refusal_of(module), "");
  ++*module.shape.top_k;
  EXPECT_EQ(refusal_of(module), "module `experts` has 3 groups, and top_k 4 is more");
  module.shape.top_k = 1;
  module.flags.bias = true;
  EXPECT_EQ(refusal_of(module),
            "module `experts` has biases, and capo runs no biases of experts behind a router");
  module.flags.bias = false;
  module.shape.groups.reset();
  EXPECT_EQ(refusal_of(module), "module `experts` does not say its groups");
}

TEST(StepLayersRefusals, CodesTakeMemoryOfTheirOwn) {
  Module module = declared();
  module.recipe = Recipe::Current;
  EXPECT_EQ(refusal_of(module), "") << "it runs in the module's own type";
  module.recipe = Recipe::Mxfp8;
  EXPECT_EQ(refusal_of(module),
            "module `experts` takes 13312 bytes of activations, and the model file gives it 8192");
  module.bytes.activations = 13312;
  EXPECT_EQ(refusal_of(module), "");
}

TEST(StepLayersRefusals, OnlyOneKindScalesItsBias) {
  Module module = declared();
  module.flags.bias = true;
  module.flags.scale_bias = true;
  EXPECT_EQ(refusal_of(module),
            "module `experts` scales its bias, which only a grouped-linear-op does");
  module.kind = ModuleKind::GroupedLinearOp;
  EXPECT_EQ(refusal_of(module), "");
  module.flags.bias = false;
  EXPECT_EQ(refusal_of(module), "module `experts` scales a bias that it does not have");
}

// Three groups of 16 x 16; transposed it cannot be viewed as one of three matrices.
TEST(StepLayersRefusals, AMainGradThatNoProductCanWriteIsRefused) {
  Module module = declared();
  module.flags.single_weight = true;
  module.main_grad = MainGrad{.shape = {3, 16, 16}, .strides = {256, 1, 16}};
  EXPECT_EQ(refusal_of(module),
            "module `experts`: main_grad of shape (3, 16, 16) with strides (256, 1, 16) cannot be "
            "viewed as (groups 3, out 16, in 16): as that it has strides (256, 1, 16) and not "
            "(256, 16, 1), so its elements do not lie one behind another");
  module.main_grad = MainGrad{.shape = {48, 16}, .strides = {16, 1}};
  EXPECT_EQ(refusal_of(module), "");
  module.main_grad = MainGrad{.shape = {3, 16, 16}, .strides = {256, 1, 16}};
  module.flags.single_weight = false;
  EXPECT_EQ(refusal_of(module), "");
}

// The first weight of an MLP is 3 groups of 32 x 16, the second of 16 x 16.
TEST(StepLayersRefusals, AnMlpsMainGradIsThatOfEitherWeight) {
  Module module = declared();
  module.kind = ModuleKind::GroupedMlp;
  module.flags.single_weight = true;
  module.main_grad = MainGrad{.shape = {3, 32, 16}, .strides = {512, 16, 1}};
  EXPECT_EQ(refusal_of(module), "");
  module.main_grad = MainGrad{.shape = {3, 16, 16}, .strides = {256, 16, 1}};
  EXPECT_EQ(refusal_of(module), "");
  module.main_grad = MainGrad{.shape = {3, 8, 16}, .strides = {128, 16, 1}};
  EXPECT_EQ(refusal_of(module),
            "module `experts`: main_grad of shape (3, 8, 16) with strides (128, 16, 1) cannot be "
            "viewed as (groups 3, out 32, in 16): it has 384 elements and not 1536");
}

// 8 rows of 16 columns in bf16 are 256 bytes.
TEST(StepLayersRefusals, AnInputThatIsTooSmallIsRefused) {
  Module module = declared();
  module.bytes.input = 256;
  EXPECT_EQ(refusal_of(module), "");
  module.bytes.input = 255;
  EXPECT_EQ(refusal_of(module),
            "module `experts` takes 256 bytes of input, and the model file gives it 255");
  module.splits = Splits::Input;
  module.bytes.input = 256;
  EXPECT_EQ(refusal_of(module),
            "module `experts` takes 280 bytes of input, and the model file gives it 256");
}

TEST(StepLayersRefusals, AnOutputThatIsTooSmallIsRefused) {
  Module module = declared();
  module.shape.ffn = 32;
  module.bytes.output = 500;
  EXPECT_EQ(refusal_of(module),
            "module `experts` takes 512 bytes of output, and the model file gives it 500");
}

// After a norm a copy is kept in any case.
TEST(StepLayersRefusals, ActivationsThatAreTooSmallAreRefused) {
  Module module = declared();
  module.kind = ModuleKind::LayerNormLinear;
  module.bytes.activations = 100;
  EXPECT_EQ(refusal_of(module),
            "module `experts` takes 256 bytes of activations, and the model file gives it 100");
  module.kind = ModuleKind::GroupedMlp;
  module.bytes.activations = 1279;
  EXPECT_EQ(refusal_of(module),
            "module `experts` takes 1280 bytes of activations, and the model file gives it 1279");
  module.bytes.activations = 1280;
  EXPECT_EQ(refusal_of(module), "");
}

TEST(StepLayersRefusals, AnInputIsNoAliasOfWhatForwardMakes) {
  for (const ModuleKind kind :
       {ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp, ModuleKind::GroupedMlp}) {
    Module module = declared();
    module.kind = kind;
    CheckOptions options = every_layer(module);
    options.plan.aliases = Aliases{.input = true, .grad_output = true};
    EXPECT_EQ(refusal_of("[1, -1]", options),
              "module `experts`: what its weight gradient reads is no alias of its input, as the "
              "plan has it, but what forward keeps");
    options.plan.aliases = Aliases{.input = false, .grad_output = true};
    EXPECT_EQ(refusal_of("[1, -1]", options), "");
  }
}

// Only where a W of its own reads a copy of the gradient.
TEST(StepLayersRefusals, OperandsThatAreTooSmallAreRefused) {
  Module module = declared();
  module.flags.gathered_grad_output = true;
  module.bytes.operands = 100;
  EXPECT_EQ(refusal_of("[1, -1]", every_layer(module)), "");
  module.flags.delay_wgrad = true;
  EXPECT_EQ(refusal_of("[1, -1, -1.5]", every_layer(module)),
            "module `experts` takes 256 bytes of operands, and the model file gives it 100");
  module.flags.gathered_grad_output = false;
  EXPECT_EQ(refusal_of("[1, -1, -1.5]", every_layer(module)), "");
}

// Layer 0 or chunk 1 is as declared; what follows it is another module.
CheckOptions two(const Module& second, std::vector<std::vector<std::vector<std::int32_t>>> layers) {
  CheckOptions options = every_layer(declared());
  options.modules.list.push_back(second);
  options.modules.list.back().name = "second";
  options.modules.layers = std::move(layers);
  return options;
}

const char* const kTwoLayers = "capo 1\nranks 1\nmicrobatches 1\nlayers 2\nrank 0: F1.0 B1.0\n";
const char* const kTwoChunks =
    "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n";

TEST(StepLayersRefusals, ALayerReadsWhatTheOneBeforeMakes) {
  Module second = declared();
  EXPECT_EQ(refusal_of(kTwoLayers, two(second, {{{0, 1}}})), "");
  second.shape.hidden = 24;
  EXPECT_EQ(refusal_of(kTwoLayers, two(second, {{{0, 1}}})),
            "layer 0 of chunk 1 of rank 0 makes 8 x 16 of bf16, and layer 1 of chunk 1 of rank 0 "
            "reads 8 x 24 of bf16");
  second = declared();
  second.shape.tokens = 4;
  EXPECT_EQ(refusal_of(kTwoLayers, two(second, {{{0, 1}}})),
            "layer 0 of chunk 1 of rank 0 makes 8 x 16 of bf16, and layer 1 of chunk 1 of rank 0 "
            "reads 4 x 16 of bf16");
  second = declared();
  second.dtype = DataType::Fp16;
  EXPECT_EQ(refusal_of(kTwoLayers, two(second, {{{0, 1}}})),
            "layer 0 of chunk 1 of rank 0 makes 8 x 16 of bf16, and layer 1 of chunk 1 of rank 0 "
            "reads 8 x 16 of fp16");
}

TEST(StepLayersRefusals, AStageReadsWhatTheOneBeforeMakes) {
  Module second = declared();
  second.shape.hidden = 24;
  EXPECT_EQ(refusal_of(kTwoChunks, two(second, {{{0}, {1}}})),
            "layer 0 of chunk 1 of rank 0 makes 8 x 16 of bf16, and layer 0 of chunk 2 of rank 0 "
            "reads 8 x 24 of bf16");
  // Chunks that are not wired read nothing of each other.
  EXPECT_EQ(refusal_of("[1, 2, -2, -1]", two(second, {{{0}, {1}}})), "");
}

// It is the last layer of a stage that the next one reads.
TEST(StepLayersRefusals, OfAStageTheLastLayerIsRead) {
  Module second = declared();
  second.shape.ffn = 24;
  const std::string order =
      "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nlayers 2,1\nrank 0: F1.0 F2.0 B2.0 "
      "B1.0\n";
  EXPECT_EQ(refusal_of(order, two(second, {{{0, 1}, {0}}})),
            "layer 1 of chunk 1 of rank 0 makes 8 x 24 of bf16, and layer 0 of chunk 2 of rank 0 "
            "reads 8 x 16 of bf16");
}

TEST(StepLayersRefusals, AStageHasLayers) {
  const std::string first =
      "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nlayers 0,1\nrank 0: F1.0 F2.0 B2.0 "
      "B1.0\n";
  EXPECT_EQ(refusal_of(first, two(declared(), {{{}, {1}}})),
            "chunk 1 of rank 0 has no layers, and a pipeline of stages needs them");
  const std::string second =
      "capo 1\nranks 1\nmicrobatches 1\nplacement chain\nlayers 1,0\nrank 0: F1.0 F2.0 B2.0 "
      "B1.0\n";
  EXPECT_EQ(refusal_of(second, two(declared(), {{{0}, {}}})),
            "chunk 2 of rank 0 has no layers, and a pipeline of stages needs them");
}

}  // namespace
}  // namespace capo::run
